//! `svc frontend …`: the pages of a project.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::ApiClient;
use super::difference::TextDifference;
use super::error::{CliFailure, FailureExitCode, Result};
use super::files::DirectoryHandle;
use super::output::{grid, key_values, member_text, print_source, table_of};
use super::projects::{ProjectSelectionArgs, RemoteProject};
use super::question::ChangeQuestion;
use super::sites::{RemoteSite, SITE_TYPE, SiteDifference, SiteFolder, is_folder, size_text};
use super::source::{STDIN, SourceToPublish};
use super::{CommonArgs, endpoints, secret};
use svc_sources::ContentType;

/// Lists, shows, compares and deletes frontends.
#[derive(Debug, clap::Subcommand)]
pub enum FrontendCommand {
    /// List the frontends of a project, oldest first
    List {
        #[command(flatten)]
        project_option: ProjectSelectionArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show what is known of a frontend
    Show {
        #[command(flatten)]
        page: FrontendArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Print the source of a page as it was published, or the list of a site's files
    Content {
        #[command(flatten)]
        page: FrontendArgs,
        /// A revision in place of what is live
        #[arg(long, value_name = "ID")]
        revision: Option<String>,
        #[command(flatten)]
        to: SourceOutputArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show how a file or a folder differs from what is live
    Diff {
        #[command(flatten)]
        page: FrontendArgs,
        /// The file, or the folder of a site; `-` is standard input
        file: PathBuf,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// List everything that was ever live, newest first
    Releases {
        #[command(flatten)]
        page: FrontendArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Move a quick share into a project, with its slug and its visits
    Claim {
        /// The share's id, as `svc publish` said
        id: String,
        /// Read the share's token from the first line of a file in place of asking for it
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        project_option: ProjectSelectionArgs,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Delete a frontend with its history
    Delete {
        #[command(flatten)]
        page: FrontendArgs,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        common: CommonArgs,
    },
}

/// Which frontend a command is about.
#[derive(Clone, Debug, clap::Args)]
pub struct FrontendArgs {
    /// The frontend: its slug or its id
    slug: String,
    #[command(flatten)]
    project_option: ProjectSelectionArgs,
}

/// Where a source goes.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceOutputArgs {
    /// Write it into a file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, requires = "output")]
    force: bool,
}

/// Source of a frontend, with its type.
#[derive(Debug, Deserialize)]
pub(super) struct FrontendSource {
    pub(super) content: String,
    #[serde(rename = "type")]
    pub(super) content_type: ContentType,
}

/// Content of a frontend.
#[derive(Debug)]
pub(super) enum FrontendContent {
    Page(FrontendSource),
    Site(RemoteSite),
    /// It is what the caller knows already.
    Known,
}

impl FrontendContent {
    fn parse(document: Value) -> Result<Self> {
        if document["unchanged"] == true {
            return Ok(Self::Known);
        }
        if document["type"] == SITE_TYPE {
            return RemoteSite::parse(document).map(Self::Site);
        }
        let page = serde_json::from_value(document).map_err(|_| {
            CliFailure::new(
                FailureExitCode::NoAnswer,
                "Not an answer",
                "The server answered without the source. Nothing was done with it.",
            )
        });
        page.map(Self::Page)
    }
}

/// A frontend that a command works on.
#[derive(Debug)]
pub(super) struct FrontendHandle {
    pub(super) api: ApiClient,
    pub(super) project: RemoteProject,
    pub(super) slug: String,
}

impl FrontendArgs {
    /// Finds the project of the frontend.
    pub(super) async fn find(&self, common: &CommonArgs) -> Result<FrontendHandle> {
        let (api, project) = self.project_option.open(&common.remote).await?;
        Ok(FrontendHandle {
            api,
            project,
            slug: self.slug.clone(),
        })
    }
}

impl FrontendHandle {
    /// Path parameters of the frontend: project and slug.
    pub(super) fn path_parts(&self) -> [&str; 2] {
        [&self.project.id, &self.slug]
    }

    /// Reads the content of a revision, or the live one, unless it has the digest `known`.
    pub(super) async fn content(
        &self,
        revision: Option<&str>,
        known: Option<&str>,
    ) -> Result<FrontendContent> {
        let asked = self.api.call(&endpoints::CONTENT, &self.path_parts());
        let asked = asked
            .query("revision_id", revision)
            .query("known_content_sha256", known);
        FrontendContent::parse(asked.send().await?)
    }

    /// Reads the source of a revision, or the live one, of a page.
    ///
    /// # Errors
    /// Failures of the server, and when the frontend is a site.
    pub(super) async fn source(&self, revision: Option<&str>) -> Result<FrontendSource> {
        match self.content(revision, None).await? {
            FrontendContent::Page(source) => Ok(source),
            FrontendContent::Site(_) | FrontendContent::Known => Err(CliFailure::local(format!(
                "`{}` is a site, which is a folder for good: name the folder, or another frontend with `--slug`.",
                self.slug
            ))),
        }
    }

    /// Failure of a folder for a frontend that is a page.
    pub(super) fn no_site_failure(&self) -> CliFailure {
        CliFailure::local(format!(
            "`{}` is a page of one source for good, and no site: name its file, or publish the folder under another slug.",
            self.slug
        ))
    }
}

impl FrontendCommand {
    pub(super) async fn run(self) -> Result<()> {
        match self {
            Self::List {
                project_option,
                common,
            } => list(&project_option, &common).await,
            Self::Show { page, common } => show(&page, &common).await,
            Self::Content {
                page,
                revision,
                to,
                common,
            } => content(&page, revision, to, &common).await,
            Self::Diff { page, file, common } => diff(&page, &file, &common).await,
            Self::Releases { page, common } => releases(&page, &common).await,
            Self::Claim {
                id,
                token_file,
                project_option,
                common,
            } => claim(&id, token_file.as_deref(), &project_option, &common).await,
            Self::Delete { page, yes, common } => delete(&page, yes, &common).await,
        }
    }
}

async fn list(project_option: &ProjectSelectionArgs, common: &CommonArgs) -> Result<()> {
    let (api, project) = project_option.open(&common.remote).await?;
    let found = api
        .call(&endpoints::FRONTENDS, &[&project.id])
        .send()
        .await?;
    let members = [
        "slug",
        "type",
        "title",
        "state",
        "visits",
        "updated_at",
        "url",
    ];
    let text = table_of(&found["frontends"], &members);
    common.output().print_answer(&found, &text)
}

async fn show(page: &FrontendArgs, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    let asked = found.api.call(&endpoints::FRONTEND, &found.path_parts());
    let shown = asked.send().await?;
    let names = [
        "slug",
        "url",
        "type",
        "title",
        "state",
        "visits",
        "created_at",
        "updated_at",
        "content_sha256",
        "active_revision_id",
        "revision_count",
        "id",
    ];
    let text = key_values(&names.map(|name| (name, member_text(&shown, name))));
    common.output().print_answer(&shown, &text)
}

async fn content(
    page: &FrontendArgs,
    revision: Option<String>,
    to: SourceOutputArgs,
    common: &CommonArgs,
) -> Result<()> {
    let found = page.find(common).await?;
    let asked = found.api.call(&endpoints::CONTENT, &found.path_parts());
    let content = asked.query("revision_id", revision).send().await?;
    if content["type"] == SITE_TYPE {
        return print_site(&content, &to, common);
    }
    let Some(text) = content["content"].as_str() else {
        return Err(CliFailure::new(
            FailureExitCode::NoAnswer,
            "Not an answer",
            "The server answered without the source. Nothing was written.",
        ));
    };
    match to.output {
        Some(path) if path.as_os_str() != STDIN => {
            let (folder, name) = DirectoryHandle::open_parent(&path)?;
            folder.write(&name, text.as_bytes(), to.force)?;
            let document = json!({ "file": path.display().to_string(), "bytes": text.len() });
            common
                .output()
                .print_answer(&document, &path.display().to_string())
        }
        _ if common.json => common.output().print_answer(&content, ""),
        // Unchanged bytes of the author, which may go to a file.
        _ => print_source(text),
    }
}

/// Prints the files of a site.
fn print_site(content: &Value, to: &SourceOutputArgs, common: &CommonArgs) -> Result<()> {
    if to.output.is_some() {
        return Err(CliFailure::local(
            "It is a site, and not one file: `svc pull DIR --project NAME` writes its folder.",
        ));
    }
    let site = RemoteSite::parse(content.clone())?;
    let rows = site
        .files
        .iter()
        .map(|(path, file)| vec![path.clone(), size_text(file.bytes), file.digest.to_string()]);
    let text = grid(&["path", "size", "sha256"], &rows.collect::<Vec<_>>());
    common.output().print_answer(content, &text)
}

async fn releases(page: &FrontendArgs, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    let asked = found.api.call(&endpoints::RELEASES, &found.path_parts());
    let all = asked.send().await?;
    let text = table_of(&all["releases"], &["at", "kind", "message", "revision_id"]);
    common.output().print_answer(&all, &text)
}

async fn claim(
    id: &str,
    token: Option<&Path>,
    project_option: &ProjectSelectionArgs,
    common: &CommonArgs,
) -> Result<()> {
    let token = match token {
        Some(file) => secret::read_from_file("token", file)?,
        None => secret::prompt("token")?,
    };
    let (api, project) = project_option.open(&common.remote).await?;
    let body = json!({ "id": id, "delete_token": token });
    let claiming = api.call(&endpoints::CLAIM, &[&project.id]).body(body);
    let claimed = claiming.send().await?;
    common
        .output()
        .print_answer(&claimed, &member_text(&claimed, "url"))
}

async fn delete(page: &FrontendArgs, yes: bool, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    let slug = &found.slug;
    let change = format!("Delete the page `{slug}` with its history");
    ChangeQuestion::about(&found.api, &found.project, &change).confirm(common.output(), yes)?;
    let deleting = found
        .api
        .call(&endpoints::DELETE_FRONTEND, &found.path_parts());
    deleting.send().await?;
    let document = json!({ "slug": slug, "deleted": true });
    common
        .output()
        .print_answer(&document, &format!("deleted {slug}"))
}

async fn diff(page: &FrontendArgs, file: &Path, common: &CommonArgs) -> Result<()> {
    let found = page.find(common).await?;
    if is_folder(file) {
        let FrontendContent::Site(live) = found.content(None, None).await? else {
            return Err(found.no_site_failure());
        };
        let difference = SiteDifference::of_folder(&live, &SiteFolder::read(file)?, None);
        return common
            .output()
            .print_answer(&difference.to_json(), &difference.to_text());
    }
    let live = found.source(None).await?;
    let source = read_source_of_type(file, live.content_type)?;
    let name = file.display().to_string();
    let difference =
        TextDifference::between((&found.slug, &live.content), (&name, &source.content));
    let document = json!({ "added": difference.added, "removed": difference.removed, "diff": difference.text });
    common.output().print_answer(&document, &difference.text)
}

/// Reads a file for a frontend, whose type cannot change.
///
/// # Errors
/// When the file's name stands for another type.
pub(super) fn read_source_of_type(
    file: &Path,
    content_type: ContentType,
) -> Result<SourceToPublish> {
    // Standard input has no name, and is read once.
    let wanted = (file.as_os_str() == STDIN).then_some(content_type);
    let source = SourceToPublish::read(file, wanted)?;
    if source.content_type == content_type {
        return Ok(source);
    }
    Err(CliFailure::local(format!(
        "{} is {} by its name, and the frontend is {content_type} for good: publish it under another slug.",
        file.display(),
        source.content_type
    )))
}
