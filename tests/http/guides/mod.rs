//! README and the guides of `docs/`: every command is run as it stands there, every file of settings is read, every
//! link leads somewhere, and every table that is made from the code is as the code makes it.
//!
//! A new file of `docs/` is under test without a line here. Its blocks are told apart by their language:
//! - `sh`: a script. All scripts of a document run in their order, in one shell, against a server of its own.
//! - `sh lasting`: a command in its turn that goes on until it is interrupted, which it is when it has printed a line.
//! - `sh stopped`: a script as of `sh`, after that server has ended.
//! - `sh cluster`: a script that `tests/cluster/guide.rs` runs, since it needs PostgreSQL.
//! - `console`: a command that no test can run. [`commands::UNTESTED_COMMANDS`] lists each with the reason.
//! - `toml`: a file of settings.
//! - `yaml`: a part of a file of another program, which no test has.
//! - `mermaid`: a picture.
//! - `caddy`, `nginx`: a file of another program, which lies in `docs/` and is tried in `proxies/`.
//!
//! A line `<!-- shows: TEXT -->` says that the scripts' output contains TEXT.

mod commands;
mod generated;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use svc::config::Settings;
use svc::guides::{GUIDES, Guide};
use svc_sandbox::ContentType;

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
    fn text_of_blocks(&self, info: &str) -> String {
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
    fn expected_texts(&self) -> Vec<&str> {
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
        let is_setting = !matches!(key, "config" | "dev" | "help" | "standby" | "version");
        assert!(
            !is_setting || guide.contains(&format!("| `{key}` |")),
            "docs/operate.md has no row of `{key}`"
        );
    }
}

#[test]
fn every_type_of_content_is_explained() {
    let guide = std::fs::read_to_string(root().join("docs/share.md")).unwrap();
    for kind in ContentType::ALL {
        for word in kind.extensions().iter().chain([&kind.as_str()]) {
            let said = guide.contains(&format!("`{word}`"));
            assert!(said, "docs/share.md does not say `{word}`");
        }
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
