//! `svc revision …`: the history of a frontend.

use serde::Deserialize;
use serde_json::{Value, json};

use super::difference::TextDifference;
use super::error::{CliFailure, FailureExitCode, Result};
use super::frontends::{FrontendArgs, FrontendContent, FrontendHandle};
use super::output::{key_values, member_text, quote_shell_word, server_note, table_of};
use super::question::ChangeQuestion;
use super::sites::{SeenSite, SiteDifference};
use super::{CommonArgs, endpoints};

/// Default number of listed revisions.
const DEFAULT_LIMIT: u32 = 20;

/// Lists, shows, compares, releases and deletes revisions.
#[derive(Debug, clap::Subcommand)]
pub enum RevisionCommand {
    /// List the revisions of a frontend, newest first
    List {
        #[command(flatten)]
        page: FrontendArgs,
        /// How many
        #[arg(long, default_value_t = DEFAULT_LIMIT)]
        limit: u32,
        /// `next_cursor` of the answer before
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show what is known of a revision
    Show {
        #[command(flatten)]
        page: FrontendArgs,
        /// The revision's id
        revision: String,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show how a revision differs from another, or from what is live
    Diff {
        #[command(flatten)]
        page: FrontendArgs,
        /// The revision's id
        revision: String,
        /// The older one [default: what is live]
        #[arg(long, value_name = "ID")]
        from: Option<String>,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Make a revision live
    Promote {
        #[command(flatten)]
        release: ReleaseArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Make live again what was live before
    Rollback {
        #[command(flatten)]
        release: ReleaseArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Delete a revision that is not live, and the files that it alone has
    Delete {
        #[command(flatten)]
        page: FrontendArgs,
        /// The revision's id
        revision: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        common: CommonArgs,
    },
}

/// Revision to make live.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    #[command(flatten)]
    page: FrontendArgs,
    /// The revision's id
    revision: String,
    /// Revision that you believe is live: if it is not, nothing happens [default: what is live now]
    #[arg(long, value_name = "ID")]
    expect: Option<String>,
    /// Reason for the release
    #[arg(long, short)]
    message: Option<String>,
    /// Of a site: open tabs get no file of before any more
    #[arg(long)]
    forget: bool,
}

/// Choices of a release, beside what becomes live.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReleaseOptions<'a> {
    /// Reason for it.
    pub(super) message: Option<&'a str>,
    /// Whether open tabs get no file of before any more.
    pub(super) forget: bool,
}

/// Id of the live revision.
#[derive(Debug, Deserialize)]
pub(super) struct LiveRevisionId {
    pub(super) active_revision_id: String,
}

impl FrontendHandle {
    /// Reads the id of the live revision.
    pub(super) async fn active_revision(&self) -> Result<String> {
        let asked = self.api.call(&endpoints::REVISIONS, &self.path_parts());
        let active: LiveRevisionId = asked.query("limit", Some(1)).send_and_parse().await?;
        Ok(active.active_revision_id)
    }
}

impl RevisionCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List {
                page,
                limit,
                cursor,
                common,
            } => list(&page, limit, cursor, &common).await,
            Self::Show {
                page,
                revision,
                common,
            } => show(&page, &revision, &common).await,
            Self::Diff {
                page,
                revision,
                from,
                common,
            } => {
                let found = page.find(&common).await?;
                diff(&found, from.as_deref(), &revision, &common).await
            }
            Self::Promote { release, common } => release.run(&endpoints::PROMOTE, &common).await,
            Self::Rollback { release, common } => release.run(&endpoints::ROLLBACK, &common).await,
            Self::Delete {
                page,
                revision,
                yes,
                common,
            } => delete(&page, &revision, yes, &common).await,
        }
    }
}

/// Shows how a revision differs from another one, or from what is live.
async fn diff(
    found: &FrontendHandle,
    from: Option<&str>,
    revision: &str,
    common: &CommonArgs,
) -> Result<()> {
    let old = found.content(from, None).await?;
    let new = found.content(Some(revision), None).await?;
    match (old, new) {
        (FrontendContent::Page(old), FrontendContent::Page(new)) => {
            let old = (from.unwrap_or("live"), old.content.as_str());
            let difference = TextDifference::between(old, (revision, &new.content));
            let document = json!({ "added": difference.added, "removed": difference.removed, "diff": difference.text });
            common.output().print_answer(&document, &difference.text)
        }
        (FrontendContent::Site(old), FrontendContent::Site(new)) => {
            let difference = SiteDifference::of_revisions(&old, &new);
            common
                .output()
                .print_answer(&difference.to_json(), &difference.to_text())
        }
        _ => Err(CliFailure::new(
            FailureExitCode::NoAnswer,
            "Not an answer",
            "The server answered a page and a site of one frontend.",
        )),
    }
}

async fn delete(page: &FrontendArgs, revision: &str, yes: bool, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    let change = format!("Delete the revision {revision} of `{}`", found.slug);
    ChangeQuestion::about(&found.api, &found.project, &change).confirm(common.output(), yes)?;
    let [project, slug] = found.path_parts();
    let deleting = found
        .api
        .call(&endpoints::DELETE_REVISION, &[project, slug, revision]);
    deleting.send().await?;
    let document = json!({ "revision_id": revision, "deleted": true });
    common
        .output()
        .print_answer(&document, &format!("deleted {revision}"))
}

async fn list(
    page: &FrontendArgs,
    limit: u32,
    cursor: Option<String>,
    common: &CommonArgs,
) -> Result<()> {
    let found = page.find(common).await?;
    let asked = found.api.call(&endpoints::REVISIONS, &found.path_parts());
    let asked = asked.query("limit", Some(limit)).query("cursor", cursor);
    let list = asked.send().await?;
    let members = ["revision_id", "state", "kind", "created_at", "message"];
    if let Some(next) = list["next_cursor"].as_str() {
        let note = format!("There are more: --cursor {}", quote_shell_word(next));
        common.output().print_note(&note);
    }
    let text = table_of(&list["revisions"], &members);
    common.output().print_answer(&list, &text)
}

async fn show(page: &FrontendArgs, revision: &str, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    let [project, slug] = found.path_parts();
    let asked = found
        .api
        .call(&endpoints::REVISION, &[project, slug, revision]);
    let shown = asked.send().await?;
    let names = [
        "revision_id",
        "state",
        "kind",
        "title",
        "message",
        "created_at",
        "promoted_at",
        "content_sha256",
    ];
    let text = key_values(&names.map(|name| (name, member_text(&shown, name))));
    common.output().print_answer(&shown, &text)
}

impl ReleaseArgs {
    async fn run(self, call: &'static endpoints::Endpoint, common: &CommonArgs) -> Result<()> {
        let found = self.page.find(common).await?;
        let expected = match self.expect {
            Some(expected) => expected,
            None => found.active_revision().await?,
        };
        let options = ReleaseOptions {
            message: self.message.as_deref(),
            forget: self.forget,
        };
        let done = found
            .release(call, &self.revision, &expected, options)
            .await?;
        SeenSite::at(found.api.server_url(), &found.project.id, &found.slug).forget();
        common.output().print_note(&release_note(&done));
        common
            .output()
            .print_answer(&done, &member_text(&done["frontend"], "url"))
    }
}

impl FrontendHandle {
    /// Makes a revision live, if the `expected` one is still live.
    pub(super) async fn release(
        &self,
        call: &'static endpoints::Endpoint,
        revision: &str,
        expected: &str,
        options: ReleaseOptions<'_>,
    ) -> Result<Value> {
        let body = json!({
            "revision_id": revision,
            "expected_active_revision_id": expected,
            "message": options.message,
            "forget": options.forget.then_some(true),
        });
        self.api
            .call(call, &self.path_parts())
            .body(body)
            .send()
            .await
    }
}

/// Note of the server that compares a release with the previous live revision.
pub(super) fn release_note(released: &Value) -> String {
    server_note(released["note"].as_str().unwrap_or_default())
}
