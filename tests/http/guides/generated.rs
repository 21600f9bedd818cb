//! Tables that are made from the code, and files that are shown whole: a guide has them as they are.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use svc::config::{Limits, format_limit};
use svc::control::audit::AuditAction;
use svc::http::problem::ProblemCode;

use super::{documents, root};

/// Files that a guide shows whole: `<!-- file: PATH -->` names one, and `<!-- file end -->` ends it.
#[test]
fn files_are_shown_as_they_are() {
    let (seen, stale) = regenerate("file", |path, shown| {
        let language = shown.lines().next().unwrap();
        let file = std::fs::read_to_string(root().join(path)).unwrap();
        format!("{language}\n{file}```\n")
    });
    assert!(
        stale.is_empty(),
        "{stale:?} show other files: run this with UPDATE_GOLDEN=1"
    );
    assert_eq!(seen.len(), 2);
}

/// Tables that are made from the code: a document names one by `<!-- made: NAME -->` and `<!-- made end -->`.
#[test]
fn tables_are_as_the_code_makes_them() {
    let (mut made, stale) = regenerate("made", |name, _| table(name));
    assert!(
        stale.is_empty(),
        "{stale:?} have stale tables: run this with UPDATE_GOLDEN=1"
    );
    made.sort();
    let expected = ["acts", "client commands", "commands", "errors", "limits"];
    assert_eq!(made, expected);
}

/// Compares what stands in the documents between two marks of a kind with what `make` makes of its name and what stands there;
/// returns the names, and the documents that have something else, unless these are to be written.
fn regenerate(kind: &str, make: impl Fn(&str, &str) -> String) -> (Vec<String>, Vec<String>) {
    let (mut names, mut stale) = (Vec::new(), Vec::new());
    let (begin, end) = (format!("<!-- {kind}: "), format!("<!-- {kind} end -->"));
    for document in documents() {
        let mut parts = document.text.split(&begin);
        let mut expected = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" -->\n").unwrap();
            let (shown, rest) = rest.split_once(&end).unwrap();
            let made = make(name, shown);
            write!(expected, "{begin}{name} -->\n{made}{end}{rest}").unwrap();
            names.push(name.to_owned());
        }
        if expected != document.text && std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(root().join(&document.path), &expected).unwrap();
        } else if expected != document.text {
            stale.push(document.path.clone());
        }
    }
    (names, stale)
}

fn table(name: &str) -> String {
    match name {
        "acts" => audit_action_table(),
        "errors" => errors(),
        "limits" => limits(),
        "commands" => command_table(|name| !is_clients(name)),
        "client commands" => {
            let is_shared =
                |name: &str| name.starts_with("svc project ") || name == "svc domain list";
            command_table(|name| is_clients(name) || is_shared(name))
        }
        other => panic!("there is no table `{other}`"),
    }
}

fn audit_action_table() -> String {
    let rows = AuditAction::ALL
        .iter()
        .map(|act| format!("| `{}` | {} |\n", act.as_str(), act.about().trim()));
    format!(
        "| action | what was done; the target |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// The commands of which some are wanted.
fn command_table(wanted: impl Fn(&str) -> bool) -> String {
    let mut rows = Vec::new();
    let all = svc::cli::commands();
    let serve = all.find_subcommand("serve").unwrap();
    let settings = serve.get_arguments();
    let settings = settings.map(|argument| argument.get_id().as_str());
    commands(&all, "", &settings.collect(), &mut rows);
    let rows = rows.into_iter().filter(|(name, _)| wanted(name));
    let rows: String = rows.map(|(_, row)| row).collect();
    format!("| command | |\n|---|---|\n{rows}")
}

/// Whether a command, as `svc project create`, goes to a server and to nothing else.
fn is_clients(name: &str) -> bool {
    use clap::Subcommand as _;
    let clients = svc::client::ClientCommand::augment_subcommands(clap::Command::new("svc"));
    let changes =
        svc::client::ProjectChangeCommand::augment_subcommands(clap::Command::new("project"));
    let domains =
        svc::client::DomainChangeCommand::augment_subcommands(clap::Command::new("domain"));
    let mut words = name.split(' ').skip(1);
    match words.next().unwrap() {
        "project" => changes.find_subcommand(words.next().unwrap()).is_some(),
        "domain" => domains.find_subcommand(words.next().unwrap()).is_some(),
        "completions" | "man" => true,
        word => clients.find_subcommand(word).is_some(),
    }
}

fn errors() -> String {
    let mut codes = ProblemCode::ALL.to_vec();
    codes.sort_by_key(|code| code.status());
    let rows = codes.iter().map(|code| {
        let status = code.status().as_u16();
        format!(
            "| {status} | `{}` | {} |\n",
            code.as_str(),
            code.about().trim()
        )
    });
    format!(
        "| status | code | what it means, and what to do |\n|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

pub(super) fn limits() -> String {
    let rows = Limits::ALL.iter().map(|(key, default, about)| {
        let said = match format_limit(key, *default) {
            said if said == default.to_string() => String::new(),
            said => format!(" ({said})"),
        };
        format!("| `{key}` | {default}{said} | {} |\n", about.trim())
    });
    format!(
        "| key of `[limits]` | default | |\n|---|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// A row for each command: how it is called, and what it does. Settings, and what all commands have, stand elsewhere.
pub(super) fn commands(
    command: &clap::Command,
    above: &str,
    settings: &BTreeSet<&str>,
    rows: &mut Vec<(String, String)>,
) {
    let name = format!("{above}{}", command.get_name());
    if command.has_subcommands() {
        let below = command.get_subcommands();
        for one in below.filter(|one| one.get_name() != "help" && !one.is_hide_set()) {
            commands(one, &format!("{name} "), settings, rows);
        }
        return;
    }
    let arguments = command.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        let everywhere = settings.contains(id) || ["json", "profile", "server"].contains(&id);
        argument.is_positional() || !everywhere
    });
    let shown: String = arguments
        .map(|argument| format!(" {}", argument_usage(argument)))
        .collect();
    let about = command.get_about().map(ToString::to_string);
    let row = format!("| `{name}{shown}` | {} |\n", about.unwrap());
    rows.push((name, row));
}

/// An argument as a person writes it.
pub(super) fn argument_usage(argument: &clap::Arg) -> String {
    let is_switch = !argument.get_action().takes_values();
    let choices = argument.get_possible_values();
    let named = argument.get_value_names().and_then(|names| names.first());
    let value = if choices.is_empty() {
        named.map_or_else(
            || argument.get_id().as_str().to_uppercase(),
            ToString::to_string,
        )
    } else {
        let names: Vec<_> = choices.iter().map(|choice| choice.get_name()).collect();
        names.join("|")
    };
    let shown = match argument.get_long() {
        None => value,
        Some(long) if is_switch => format!("--{long}"),
        Some(long) => format!("--{long} {value}"),
    };
    match argument.is_required_set() {
        true => shown.replace('|', "\\|"),
        false => format!("[{shown}]").replace('|', "\\|"),
    }
}
