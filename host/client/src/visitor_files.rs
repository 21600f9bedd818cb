//! `svc file …`: files that visitors of a project have uploaded.

use std::path::PathBuf;

use serde_json::json;

use super::backends::BackendTargetArgs;
use super::endpoints;
use super::error::Result;
use super::output::{escape_line, member_text, quote_shell_word, table_of};
use super::saved_body::SavePlace;

/// Default number of listed files.
const DEFAULT_LIMIT: u32 = 20;
/// Columns of the table of files.
const COLUMNS: [&str; 6] = ["id", "name", "type", "size", "user_id", "created_at"];

/// Lists, reads and deletes what visitors have uploaded.
#[derive(Debug, clap::Subcommand)]
pub enum VisitorFileCommand {
    /// List the files, newest first, and how much room they take
    List {
        /// How many
        #[arg(long, default_value_t = DEFAULT_LIMIT)]
        limit: u32,
        /// `next_cursor` of the answer before
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Copy a file to this computer
    Get {
        /// Id of the file
        #[arg(value_name = "FILE_ID")]
        file: String,
        /// Where to write it; `-` is standard output [default: the id]
        #[arg(long, short, value_name = "PATH")]
        output: Option<PathBuf>,
        /// Replace a file that is there
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
    /// Delete a file, with the rows that go with it
    Delete {
        /// Id of the file
        #[arg(value_name = "FILE_ID")]
        file: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        args: BackendTargetArgs,
    },
}

impl VisitorFileCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List {
                limit,
                cursor,
                args,
            } => list(limit, cursor, &args).await,
            Self::Get {
                file,
                output,
                force,
                args,
            } => get(&file, output, force, &args).await,
            Self::Delete { file, yes, args } => delete(&file, yes, &args).await,
        }
    }
}

async fn list(limit: u32, cursor: Option<String>, args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    let asked = at.api.call(&endpoints::VISITOR_FILES, &at.path_parts());
    let asked = asked.query("limit", Some(limit)).query("cursor", cursor);
    let list = asked.send().await?;
    if let Some(next) = list["next_cursor"].as_str() {
        let note = format!("There are more: --cursor {}", quote_shell_word(next));
        args.output().print_note(&note);
    }
    let table = table_of(&list["files"], &COLUMNS);
    let (used, limit) = (
        member_text(&list, "used_bytes"),
        member_text(&list, "limit_bytes"),
    );
    let text = format!("{table}\n\n{used} of {limit} bytes are used");
    args.output().print_answer(&list, &text)
}

async fn get(
    file: &str,
    output: Option<PathBuf>,
    force: bool,
    args: &BackendTargetArgs,
) -> Result<()> {
    let at = args.find().await?;
    // A name that a visitor gave is no path here.
    let path = output.unwrap_or_else(|| file.into());
    let call = at
        .api
        .call(&endpoints::VISITOR_FILE, &[&at.project.id, file]);
    let place = SavePlace {
        path: &path,
        force,
        work: "download",
    };
    place.save(call, args.output()).await
}

async fn delete(file: &str, yes: bool, args: &BackendTargetArgs) -> Result<()> {
    let at = args.find().await?;
    let change = format!("Delete the file `{}`", escape_line(file));
    at.question(&change).confirm(args.output(), yes)?;
    let parts = [at.project.id.as_str(), file];
    at.api
        .call(&endpoints::DELETE_VISITOR_FILE, &parts)
        .send()
        .await?;
    let document = json!({ "file": file, "deleted": true });
    let text = format!("deleted the file {}", escape_line(file));
    args.output().print_answer(&document, &text)
}
