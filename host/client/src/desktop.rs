//! The clipboard and the browser of the user, by the programs that the system has for them.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Programs that put their standard input on the clipboard, and what must be in the environment for them to work.
const CLIPBOARDS: [(&str, &[&str], Option<&str>); 4] = [
    ("pbcopy", &[], None),
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
];

/// Programs that open an address in a browser.
const BROWSERS: [&str; 2] = ["xdg-open", "open"];

/// Puts a text on the clipboard: by a program of the desktop, else by the terminal (OSC 52). Answers whether there was a way.
pub(super) fn copy_to_clipboard(text: &str) -> bool {
    for (program, arguments, needs) in CLIPBOARDS {
        if needs.is_none_or(is_set) && write_to_program(program, arguments, text) {
            return true;
        }
    }
    let mut terminal = std::io::stderr();
    let sequence = format!("\u{1b}]52;c;{}\u{7}", STANDARD.encode(text));
    terminal.is_terminal() && terminal.write_all(sequence.as_bytes()).is_ok()
}

/// Opens an address in the browser. Answers whether there was a way.
pub(super) fn open_in_browser(url: &str) -> bool {
    // An option of the program's is nothing that a server may say.
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
fn is_set(name: &str) -> bool {
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
