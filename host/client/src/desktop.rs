//! The user's clipboard and browser, through programs of the system.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Programs that copy standard input to the clipboard, with the environment variable that each needs.
const CLIPBOARDS: [(&str, &[&str], Option<&str>); 4] = [
    ("pbcopy", &[], None),
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
];

/// Programs that open a URL in a browser.
const BROWSERS: [&str; 2] = ["xdg-open", "open"];

/// Copies a text to the clipboard, by a program or else by the terminal (OSC 52). Returns whether that worked.
pub(super) fn copy_to_clipboard(text: &str) -> bool {
    for (program, arguments, needs) in CLIPBOARDS {
        if needs.is_none_or(is_environment_variable_set)
            && write_to_program(program, arguments, text)
        {
            return true;
        }
    }
    let mut terminal = std::io::stderr();
    let sequence = format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text));
    terminal.is_terminal() && terminal.write_all(sequence.as_bytes()).is_ok()
}

/// Opens a URL in the browser. Returns whether that worked.
pub(super) fn open_in_browser(url: &str) -> bool {
    // A server must not be able to pass options to the program.
    let is_address = url.starts_with("http://") || url.starts_with("https://");
    is_address
        && BROWSERS.into_iter().any(|program| {
            let mut command = silent_command(program);
            command.arg(url).stdin(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

#[allow(
    clippy::disallowed_methods,
    reason = "whether there is a desktop is the environment's to say"
)]
fn is_environment_variable_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn silent_command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn write_to_program(program: &str, arguments: &[&str], text: &str) -> bool {
    let mut command = silent_command(program);
    command.args(arguments).stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let fed = child
        .stdin
        .take()
        .is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    child.wait().is_ok_and(|status| status.success()) && fed
}
