//! README and the guides of `docs/`: every command is run as it stands there, every file of settings is read, every
//! link leads somewhere, and every table that is made from the code is as the code makes it.
//!
//! A new file of `docs/` is under test without a line here. Its blocks are told apart by their language:
//! - `sh`: a script. All scripts of a document run in their order, in one shell, against a server of its own.
//! - `sh lasting`: a command in its turn that goes on until it is interrupted, which it is when it has printed a line.
//! - `sh stopped`: a script as of `sh`, after that server has ended.
//! - `console`: a command that no test can run. [`SHOWN`] lists each with the reason.
//! - `toml`: a file of settings.
//! - `caddy`, `nginx`: a file of another program, which lies in `docs/` and is tried in `proxies.rs`.
//!
//! A line `<!-- shows: TEXT -->` says that the scripts' output contains TEXT.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::StreamExt as _;
use svc::config::{Limits, Settings, number};
use svc::control::audit::Act;
use svc::guides::{GUIDES, Guide};
use svc::http::problem::Code;
use svc_tests::guests::{Manners, renderer};
use svc_tests::{AUDIENCE, Ask, Process, TokenIssuer, finish};
use tempfile::TempDir;

use crate::svc;

/// Commands that no test can run, each with the reason.
const SHOWN: [(&str, &str); 12] = [
    (
        "cargo run --release -- serve --dev\n",
        "builds for minutes; the harness starts the same command, and `packaging/try-source` this one",
    ),
    (
        "echo '# Hello' | target/release/svc publish -\n",
        "needs the build before it; `packaging/try-source` runs both on a clean machine",
    ),
    ("cargo test\n", "is what runs this"),
    (
        "cargo build --release\n",
        "builds for minutes; a debug build is what is tested",
    ),
    (
        "sudo apt install ./svc_0.1.0_amd64.deb\n",
        "changes the machine; `packages.rs` looks into the package",
    ),
    (
        "sudo -u svc svc namespace create acme --data /var/lib/svc\n",
        "needs the package's user; the same command is run without it",
    ),
    (
        "podman run -d --name svc -p 127.0.0.1:8080:8080 -v svc:/data localhost/svc\npodman exec svc /svc namespace create acme\n",
        "needs a container engine; `packaging/image` tries the image that it builds",
    ),
    (
        "systemctl enable --now svc-backup.timer\n",
        "changes the machine; `packages.rs` has the unit verified",
    ),
    (
        "aws s3 sync /var/lib/svc/content s3://my-pages/svc\n",
        "is another program, with a bucket of its own; `tests/s3` puts the same objects there",
    ),
    (
        "svc serve --config /etc/svc.toml\n",
        "never ends; the harness starts the same command",
    ),
    (
        "svc serve --https --base-url https://share.example.com --data /var/lib/svc\n",
        "needs a public name; tests/http/https/acme.rs has the same with a test server of Let's Encrypt",
    ),
    (
        include_str!("../../host/assets/connect/claude-code.sh"),
        "is another program's; the landing page shows the same",
    ),
    (
        include_str!("../../host/assets/connect/owner-claude-code.sh"),
        "is another program's; the landing page shows the same",
    ),
];

/// The guide for people who have a server elsewhere, and no data directory.
const CLIENT: &str = "docs/client.md";

/// Files that a reader is taken to have.
const FILES: [(&str, &str); 2] = [
    ("notes.md", "# Notes\n\nOf today.\n"),
    ("main.rs", "fn main() {}\n"),
];

/// A document: its path from the root of the project, and its text.
struct Document {
    path: String,
    text: String,
}

/// A fenced block: what stands behind its fence, and its lines.
struct Block<'a> {
    info: &'a str,
    text: String,
}

impl Document {
    fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let mut is_open = false;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), is_open) {
                (Some(info), false) => {
                    let text = String::new();
                    blocks.push(Block { info, text });
                    is_open = true;
                }
                (Some(_), true) => is_open = false,
                (None, true) => writeln!(blocks.last_mut().unwrap().text, "{line}").unwrap(),
                (None, false) => assert!(!line.trim_start().starts_with("```"), "{line}"),
            }
        }
        assert!(!is_open, "{} ends in a block", self.path);
        blocks
    }

    /// All blocks of a language as one text.
    fn all(&self, info: &str) -> String {
        let blocks = self.blocks().into_iter();
        let texts = blocks
            .filter(|block| block.info == info)
            .map(|block| block.text);
        texts.collect()
    }

    /// All scripts as one.
    fn script(&self) -> String {
        let blocks = self.blocks().into_iter();
        let texts = blocks.filter_map(|Block { info, text }| match info {
            "sh" => Some(text),
            "sh lasting" => Some(format!(
                "coproc {{ exec /usr/bin/env --default-signal=INT {} ; }}\nread -r line <&\"${{COPROC[0]}}\"; echo \"$line\"; kill -INT $COPROC_PID; wait $COPROC_PID || true\n",
                text.trim()
            )),
            _ => None,
        });
        texts.collect()
    }

    /// Lists the texts that the scripts' output contains.
    fn shows(&self) -> Vec<&str> {
        let notes = self.text.split("<!-- shows: ").skip(1);
        notes
            .map(|note| note.split_once(" -->").unwrap().0)
            .collect()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// README and every guide.
fn documents() -> Vec<Document> {
    let guides = std::fs::read_dir(root().join("docs")).unwrap();
    let guides = guides.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let guides = guides.filter(|name| name.ends_with(".md"));
    let mut paths: Vec<_> = guides.map(|name| format!("docs/{name}")).collect();
    paths.push("README.md".to_owned());
    paths.sort();
    assert!(paths.len() > 5, "there are guides");
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(root().join(&path)).unwrap();
            Document { path, text }
        })
        .collect()
}

/// Where a document is tried out: a server of its own, and a directory with the files that a reader has.
struct Trial {
    here: TempDir,
    data: TempDir,
    port: u16,
    credential: String,
    /// Issuer of a document that has users.
    users: Option<Users>,
}

/// An issuer, the token of one of its people, and the id of another.
struct Users {
    _issuer: TokenIssuer,
    token: String,
    colleague: String,
}

impl Trial {
    async fn begin(has_users: bool) -> (Self, Process) {
        let (here, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (name, text) in FILES {
            std::fs::write(here.path().join(name), text).unwrap();
        }
        let component = renderer("(new)", Manners::Good);
        std::fs::write(here.path().join("new.wasm"), component).unwrap();
        let commands = here.path().join("bin");
        std::fs::create_dir(&commands).unwrap();
        let program = svc().command().get_program().to_owned();
        std::os::unix::fs::symlink(program, commands.join("svc")).unwrap();
        // A document may show more in a second than a person types in a minute.
        let settings = here.path().join("limits.toml");
        let limits = "[limits]\ndeploy_burst = 1000\nowner_burst = 1000\nop_burst = 1000\n";
        std::fs::write(&settings, limits).unwrap();
        let issuer = match has_users {
            true => Some(TokenIssuer::start().await),
            false => None,
        };
        if let Some(issuer) = &issuer {
            let oauth = format!(
                "[oauth]\nissuer = '{}'\naudience = '{AUDIENCE}'\n",
                issuer.url()
            );
            std::fs::write(&settings, format!("{limits}{oauth}")).unwrap();
        }
        let settings = settings.to_str().unwrap();
        let server = svc()
            .serve(data.path(), &["--config", settings, "--dev"])
            .await;
        let users = match issuer {
            Some(issuer) => Some(Users::of(issuer, &server).await),
            None => None,
        };
        let pro = ["namespace", "plan", "dev", "pro"];
        assert!(svc().run(data.path(), &pro).await.success);
        let make = ["key", "create", "dev", "--json"];
        let made = svc().run(data.path(), &make).await;
        assert!(made.success, "{made:?}");
        let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        let trial = Self {
            here,
            data,
            port: server.address().port(),
            credential: made["credential"].as_str().unwrap().to_owned(),
            users,
        };
        (trial, server)
    }

    /// Runs a script of a document; returns what it printed, or what went wrong.
    async fn run(&self, document: &Document, script: &str) -> Result<String, String> {
        let (here, data) = (self.here.path(), self.data.path());
        let backup = here.join("backup");
        let script = script
            .replace("localhost:8080", &format!("localhost:{}", self.port))
            .replace("/var/lib/svc", data.to_str().unwrap())
            .replace("/backup/svc", backup.to_str().unwrap());
        // An answer that refuses fails the script, whether the document says `-f` or not.
        let script = format!("curl() {{ command curl -sSf \"$@\"; }}\nset -x\n{script}");
        let path = format!(
            "{}:{}",
            here.join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &script])
            .current_dir(here)
            .envs(
                svc()
                    .command()
                    .get_envs()
                    .filter_map(|(k, v)| Some((k, v?))),
            )
            .env("PATH", path)
            .env("HOME", here)
            .env("XDG_CONFIG_HOME", here.join("config"))
            .env("SVC_SERVER", format!("http://localhost:{}", self.port))
            .env("SVC_CREDENTIAL", &self.credential)
            .envs(
                self.users.iter().flat_map(|users| {
                    [("SVC_TOKEN", &users.token), ("COLLEAGUE", &users.colleague)]
                }),
            )
            .stdin(Stdio::null());
        if document.path != CLIENT {
            bash.env("SVC_DATA", data);
        }
        let output = finish(bash).await;
        match output.success {
            true => Ok(output.stdout),
            false => Err(format!("{}\n{}", output.stdout, output.stderr)),
        }
    }
}

impl Users {
    async fn of(issuer: TokenIssuer, server: &Process) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        let token = |name: &str| issuer.sign(&issuer.claims_at(name, now));
        let (token, other) = (token("alice"), token("bob"));
        let me = server.client().get(server.url("/api/v1/me"));
        let me = me.bearer_auth(other).answer().await.expect(200).json();
        Self {
            _issuer: issuer,
            token,
            colleague: me["user_id"].as_str().unwrap().to_owned(),
        }
    }
}

/// Runs a document's scripts; returns what is wrong with them.
async fn try_out(document: &Document) -> Option<String> {
    let script = document.script();
    if script.is_empty() {
        return None;
    }
    let (trial, server) = Trial::begin(script.contains("$SVC_TOKEN")).await;
    let mut ran = trial.run(document, &script).await;
    server.kill().await;
    if let Ok(printed) = &mut ran {
        let after = trial.run(document, &document.all("sh stopped")).await;
        match after {
            Ok(after) => printed.push_str(&after),
            Err(error) => ran = Err(error),
        }
    }
    let printed = match ran {
        Ok(printed) => printed,
        Err(error) => return Some(format!("{}: {error}", document.path)),
    };
    let missing = document
        .shows()
        .into_iter()
        .find(|text| !printed.contains(text));
    missing.map(|text| format!("{}: `{text}` in:\n{printed}", document.path))
}

#[tokio::test]
async fn every_command_works_as_it_stands() {
    let documents = documents();
    let tried = futures_util::stream::iter(&documents)
        .map(try_out)
        .buffer_unordered(2);
    let wrong: Vec<_> = tried.filter_map(async |wrong| wrong).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn who_has_followed_the_readme_can_go_on_with_the_clients_guide() {
    let documents = documents();
    let named = |path: &str| documents.iter().find(|one| one.path == path).unwrap();
    let (trial, server) = Trial::begin(false).await;
    for document in [named("README.md"), named(CLIENT)] {
        let ran = trial.run(document, &document.script()).await;
        if let Err(error) = ran {
            panic!("{}: {error}", document.path);
        }
    }
    server.kill().await;
}

#[test]
fn a_command_that_is_not_run_has_a_reason() {
    let mut shown = Vec::new();
    for document in documents() {
        for block in document.blocks() {
            match block.info {
                "console" => shown.push(block.text.clone()),
                "sh" | "sh lasting" | "sh stopped" | "json" | "toml" | "html" | "js" | "sql"
                | "caddy" | "nginx" | "" => {}
                other => panic!("{}: a block of `{other}`", document.path),
            }
        }
    }
    for text in &shown {
        assert!(
            SHOWN.iter().any(|(known, _)| known == text),
            "`sh` has it run, and SHOWN says why it cannot be:\n{text}"
        );
    }
    for (known, _) in SHOWN {
        assert!(shown.iter().any(|text| text == known), "not shown: {known}");
    }
}

#[test]
fn every_file_of_settings_is_one() {
    let mut seen = 0;
    for document in documents() {
        for block in document.blocks() {
            if block.info != "toml" {
                continue;
            }
            seen += 1;
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, &block.text).unwrap();
            let settings = Settings::from_file(file.path()).unwrap();
            let resolved = settings.clone().resolve(settings.listen());
            if let Err(error) = resolved {
                panic!("{}: {error:#}\n{}", document.path, block.text);
            }
        }
    }
    assert!(seen > 0);
}

#[test]
fn every_setting_is_explained() {
    let guide = std::fs::read_to_string(root().join("docs/operate.md")).unwrap();
    let commands = svc::cli::commands();
    let serve = commands.find_subcommand("serve").unwrap();
    for argument in serve.get_arguments() {
        let key = argument.get_id().as_str();
        let is_setting = !matches!(key, "config" | "dev" | "help" | "version");
        assert!(
            !is_setting || guide.contains(&format!("| `{key}` |")),
            "docs/operate.md has no row of `{key}`"
        );
    }
}

#[test]
fn every_link_leads_somewhere() {
    for document in documents() {
        let folder = root().join(&document.path);
        for link in document.text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => folder.clone(),
                path => folder.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", document.path);
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let found = text.lines().any(|line| anchor_of(line) == anchor);
                assert!(found, "{}: {link}", document.path);
            }
        }
    }
}

/// The anchor of a heading, as GitHub makes it.
fn anchor_of(line: &str) -> String {
    let heading = line.trim_start_matches('#').trim();
    if !line.starts_with('#') {
        return String::new();
    }
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn the_readme_is_short_and_leads_to_every_guide() {
    let documents = documents();
    let readme = documents
        .iter()
        .find(|document| document.path == "README.md");
    let readme = &readme.unwrap().text;
    let lines = readme.lines().count();
    assert!(lines <= 200, "README has {lines} lines");
    for guide in documents.iter().filter(|one| one.path != "README.md") {
        let link = format!("]({})", guide.path);
        assert!(readme.contains(&link), "README links {}", guide.path);
    }
}

/// A server shows the guides that are in `docs/`, and says for whom they are as README does.
#[test]
fn a_server_has_every_guide() {
    let documents = documents();
    let readme = documents
        .iter()
        .find(|document| document.path == "README.md");
    let rows = readme.unwrap().text.lines();
    let rows: Vec<_> = rows.filter(|line| line.starts_with("| [docs/")).collect();
    let shown: Vec<_> = GUIDES
        .iter()
        .map(|Guide { name, about, .. }| format!("| [docs/{name}.md](docs/{name}.md) | {about} |"))
        .collect();
    assert_eq!(rows, shown);
}

/// Files that a guide shows whole: `<!-- file: PATH -->` names one, and `<!-- file end -->` ends it.
#[test]
fn files_are_shown_as_they_are() {
    let mut stale = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let mut parts = document.text.split("<!-- file: ");
        let mut expected = parts.next().unwrap().to_owned();
        for part in parts {
            let (path, rest) = part.split_once(" -->\n").unwrap();
            let language = rest.lines().next().unwrap();
            let (_, rest) = rest.split_once("<!-- file end -->").unwrap();
            let file = std::fs::read_to_string(root().join(path)).unwrap();
            let shown = format!("<!-- file: {path} -->\n{language}\n{file}```\n");
            write!(expected, "{shown}<!-- file end -->{rest}").unwrap();
            seen += 1;
        }
        if expected != document.text && std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(root().join(&document.path), &expected).unwrap();
        } else if expected != document.text {
            stale.push(document.path.clone());
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} show other files: run this with UPDATE_GOLDEN=1"
    );
    assert_eq!(seen, 2);
}

/// Tables that are made from the code: a document names one by `<!-- made: NAME -->` and `<!-- made end -->`.
#[test]
fn tables_are_as_the_code_makes_them() {
    let mut made = Vec::new();
    let mut stale = Vec::new();
    for document in documents() {
        let mut parts = document.text.split("<!-- made: ");
        let mut expected = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" -->\n").unwrap();
            let (_, rest) = rest.split_once("<!-- made end -->").unwrap();
            let table = table(name);
            write!(
                expected,
                "<!-- made: {name} -->\n{table}<!-- made end -->{rest}"
            )
            .unwrap();
            made.push(name.to_owned());
        }
        if expected != document.text && std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(root().join(&document.path), &expected).unwrap();
        } else if expected != document.text {
            stale.push(document.path.clone());
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} have stale tables: run this with UPDATE_GOLDEN=1"
    );
    made.sort();
    let expected = ["acts", "client commands", "commands", "errors", "limits"];
    assert_eq!(made, expected);
}

fn table(name: &str) -> String {
    match name {
        "acts" => acts(),
        "errors" => errors(),
        "limits" => limits(),
        "commands" => table_of(|name| !is_clients(name)),
        "client commands" => table_of(|name| is_clients(name) || name.starts_with("svc project ")),
        other => panic!("there is no table `{other}`"),
    }
}

fn acts() -> String {
    let rows = Act::ALL
        .iter()
        .map(|act| format!("| `{}` | {} |\n", act.as_str(), act.about().trim()));
    format!(
        "| action | what was done; the target |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// The commands of which some are wanted.
fn table_of(wanted: impl Fn(&str) -> bool) -> String {
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
    let clients = svc::client::Command::augment_subcommands(clap::Command::new("svc"));
    let changes = svc::client::ProjectChange::augment_subcommands(clap::Command::new("project"));
    let mut words = name.split(' ').skip(1);
    match words.next().unwrap() {
        "project" => changes.find_subcommand(words.next().unwrap()).is_some(),
        "completions" | "man" => true,
        word => clients.find_subcommand(word).is_some(),
    }
}

fn errors() -> String {
    let mut codes = Code::ALL.to_vec();
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

fn limits() -> String {
    let rows = Limits::ALL.iter().map(|(key, default, about)| {
        let said = match number(key, *default) {
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
fn commands(
    command: &clap::Command,
    above: &str,
    settings: &BTreeSet<&str>,
    rows: &mut Vec<(String, String)>,
) {
    let name = format!("{above}{}", command.get_name());
    if command.has_subcommands() {
        let below = command.get_subcommands();
        for one in below.filter(|one| one.get_name() != "help") {
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
        .map(|argument| format!(" {}", shown(argument)))
        .collect();
    let about = command.get_about().map(ToString::to_string);
    let row = format!("| `{name}{shown}` | {} |\n", about.unwrap());
    rows.push((name, row));
}

/// An argument as a person writes it.
fn shown(argument: &clap::Arg) -> String {
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
