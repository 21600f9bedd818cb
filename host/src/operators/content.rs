//! `svc content block|unblock|blocked|list`.

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::installation::{Installation, OperationAnswer};
use crate::content::Digest;
use crate::deployments::blocked;
use crate::deployments::operators::takedown::{self as content, ContentScope};
use crate::terminal::{or_dash, table};

/// Most characters of a note.
const MAX_NOTE_CHARACTERS: usize = 1_000;

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentOperation {
    /// Block bytes everywhere: they are refused, and answer 403 wherever they are
    Block {
        /// SHA-256 of a file, of a page's source, or of what is stored of a page, in hexadecimal
        sha256: String,
        /// Why: operators read it
        #[arg(long)]
        note: Option<String>,
    },
    /// Allow blocked bytes again
    Unblock {
        /// The SHA-256
        sha256: String,
    },
    /// List what is blocked, newest first
    Blocked,
    /// List the content of a project: what is live, with its paths and SHA-256s, visitors' files, and other files
    List {
        /// The project's id or label, or the slug of a quick share
        project: String,
    },
}

impl ContentOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::Block { sha256, note } => block(at, &sha256, note).await,
            Self::Unblock { sha256 } => unblock(at, &sha256).await,
            Self::Blocked => list_blocked(at).await,
            Self::List { project } => list(at, &project).await,
        }
    }
}

/// Reads a digest in either case.
fn parse_digest(text: &str) -> anyhow::Result<Digest> {
    let digest = Digest::from_hex(&text.to_lowercase());
    digest.with_context(|| format!("`{text}` is no SHA-256: write it as 64 hexadecimal digits"))
}

async fn block(
    at: &Installation,
    sha256: &str,
    note: Option<String>,
) -> anyhow::Result<OperationAnswer> {
    let digest = parse_digest(sha256)?;
    let is_long = |note: &String| note.chars().count() > MAX_NOTE_CHARACTERS;
    ensure!(
        !note.as_ref().is_some_and(is_long),
        "--note has {MAX_NOTE_CHARACTERS} characters at most"
    );
    let served = at.server.as_ref().map(|app| Arc::clone(&app.config));
    content::block(&at.control, &at.clock, (digest, note), served).await?;
    let document = json!({ "sha256": digest.to_string(), "blocked": true });
    let answer = OperationAnswer::new(&document, format!("blocked {digest}"))?;
    Ok(answer.logged_as(format!("content block {digest}")))
}

async fn unblock(at: &Installation, sha256: &str) -> anyhow::Result<OperationAnswer> {
    let digest = parse_digest(sha256)?;
    let served = at.server.as_ref().map(|app| Arc::clone(&app.config));
    if !content::unblock(&at.control, &at.clock, digest, served).await? {
        bail!("{digest} is not blocked: `svc content blocked` lists what is");
    }
    let document = json!({ "sha256": digest.to_string(), "blocked": false });
    let answer = OperationAnswer::new(&document, format!("unblocked {digest}"))?;
    Ok(answer.logged_as(format!("content unblock {digest}")))
}

async fn list_blocked(at: &Installation) -> anyhow::Result<OperationAnswer> {
    let blocked = blocked::list(&at.control).await?;
    let rows = blocked.iter().map(|entry| {
        let note = entry.note.as_ref();
        [
            entry.sha256.clone(),
            entry.blocked_at.to_string(),
            or_dash(note.map(|note| note.escape_debug().to_string())),
        ]
    });
    let text = table(["sha256", "since", "note"], rows);
    OperationAnswer::new(&json!({ "blocked": blocked }), text)
}

async fn list(at: &Installation, named: &str) -> anyhow::Result<OperationAnswer> {
    let scope = match at.project(named).await {
        Ok(project) => ContentScope::Project(project),
        Err(_) => ContentScope::Share(named.to_owned()),
    };
    let entries = content::list(&at.control, &at.content()?, scope).await?;
    let entries = entries.with_context(|| {
        format!("there is no project and no quick share `{named}`: name a project's id or label, or a share's slug")
    })?;
    let rows = entries.iter().map(|entry| {
        let path = entry.path.as_ref().or(entry.file.as_ref());
        [
            entry.sha256.clone(),
            or_dash(entry.bytes),
            or_dash(entry.slug.as_ref()),
            // Escaped: a stranger's path must not control the terminal.
            or_dash(path.map(|path| path.escape_debug().to_string())),
            match entry.blocked {
                true => "blocked".to_owned(),
                false => "-".to_owned(),
            },
        ]
    });
    let text = table(["sha256", "bytes", "slug", "path or file", "state"], rows);
    OperationAnswer::new(&json!({ "content": entries }), text)
}
