//! `svc push` and `svc watch`: update a frontend from a file or a folder, by a draft that is promoted.

mod folders;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::difference::TextDifference;
use super::error::{CliFailure, FailureExitCode, Result};
use super::file_watcher::{FileWatcher, MAX_WATCHED};
use super::frontends::{FrontendHandle, read_source_of_type};
use super::output::member_text;
use super::projects::ProjectSelectionArgs;
use super::revisions::{ReleaseOptions, release_note};
use super::sites::{SiteOptionArgs, is_folder, is_media, slug_of_site};
use super::source::{STDIN, SourceToPublish};
use super::{CommonArgs, endpoints, report_failure};

/// Updates a frontend from a file or a folder.
#[derive(Debug, clap::Args)]
pub struct PushCommand {
    /// The file, or the folder of a site; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    project_option: ProjectSelectionArgs,
    /// The frontend's slug [default: as the file or folder is called]
    #[arg(long)]
    slug: Option<String>,
    #[command(flatten)]
    site_options: SiteOptionArgs,
    /// Of a folder: publish it although somebody else has published since you last did
    #[arg(long)]
    force: bool,
    /// Of a folder: open tabs get no file of before any more
    #[arg(long, conflicts_with = "draft")]
    forget: bool,
    /// Make a draft with a preview, and leave what is live
    #[arg(long, conflicts_with = "promote")]
    draft: bool,
    /// Make it live, which is the default
    #[arg(long)]
    promote: bool,
    /// A new title
    #[arg(long)]
    title: Option<String>,
    /// Why it changes
    #[arg(long, short)]
    message: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Publishes a file or a folder whenever it is saved.
#[derive(Debug, clap::Args)]
pub struct WatchCommand {
    /// The file, or the folder of a site
    file: PathBuf,
    #[command(flatten)]
    project_option: ProjectSelectionArgs,
    /// The frontend's slug [default: as the file or folder is called]
    #[arg(long)]
    slug: Option<String>,
    #[command(flatten)]
    site_options: SiteOptionArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// A new source for a frontend.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewFrontendSource<'a> {
    pub(super) content: &'a str,
    pub(super) title: Option<&'a str>,
    pub(super) message: Option<&'a str>,
}

impl PushCommand {
    pub(super) async fn run(self) -> Result<()> {
        let out = self.common.output();
        let slug = self.slug.clone().map_or_else(|| slug_for(&self.file), Ok)?;
        let found = find_frontend(&self.project_option, slug, &self.common).await?;
        if self.is_for_site()? {
            return self.push_site(found).await;
        }
        // The revision is read first: the one that is compared is then the one that must still be live.
        let base = found
            .active_revision()
            .await
            .map_err(|failure| explain_missing_frontend(failure, &found))?;
        let live = found.source(Some(&base)).await?;
        let source = read_source_of_type(&self.file, live.content_type)?;
        let name = self.file.display().to_string();
        let difference =
            TextDifference::between((&found.slug, &live.content), (&name, &source.content));
        if difference.text.is_empty() && self.title.is_none() {
            let document = json!({ "changed": false, "revision_id": base });
            return out.print_answer(
                &document,
                &format!(
                    "nothing has changed: {} is what is live",
                    self.file.display()
                ),
            );
        }
        out.print_note(&difference.text);
        let new = NewFrontendSource {
            content: &source.content,
            title: self.title.as_deref(),
            message: self.message.as_deref(),
        };
        let draft = found.draft(&base, new).await?;
        let document = |url: &Value, live: bool| {
            json!({
                "changed": true, "live": live, "url": url, "revision": draft["revision"], "preview_url": draft["preview_url"],
                "added": difference.added, "removed": difference.removed,
            })
        };
        if self.draft {
            out.print_note(&format!(
                "The draft is {}. What is live has not changed.",
                member_text(&draft["revision"], "revision_id")
            ));
            return out.print_answer(
                &document(&draft["preview_url"], false),
                &member_text(&draft, "preview_url"),
            );
        }
        let done = found.promote(&base, &draft, self.release()).await?;
        out.print_note(&release_note(&done));
        let url = &done["frontend"]["url"];
        out.print_answer(&document(url, true), url.as_str().unwrap_or_default())
    }
}

impl PushCommand {
    /// Whether the file is a folder, or one that is published as a site of its own.
    ///
    /// # Errors
    /// When an option is for a folder, and the file is none.
    fn is_for_site(&self) -> Result<bool> {
        let is_site = is_folder(&self.file) || is_media(&self.file);
        match !is_site && (self.site_options.is_given() || self.force || self.forget) {
            true => Err(CliFailure::local(
                "`--fallback`, `--immutable`, `--force` and `--forget` are for a folder. Nothing was sent.",
            )),
            false => Ok(is_site),
        }
    }

    /// Choices of the release.
    fn release(&self) -> ReleaseOptions<'_> {
        ReleaseOptions {
            message: self.message.as_deref(),
            forget: self.forget,
        }
    }
}

impl FrontendHandle {
    /// Makes a draft on top of a revision.
    pub(super) async fn draft(&self, base: &str, new: NewFrontendSource<'_>) -> Result<Value> {
        let body = json!({
            "base_revision_id": base,
            "content": new.content,
            "title": new.title,
            "message": new.message,
        });
        self.api
            .call(&endpoints::CREATE_REVISION, &self.path_parts())
            .body(body)
            .send()
            .await
    }

    /// Makes a draft live, if its base still is.
    pub(super) async fn promote(
        &self,
        base: &str,
        draft: &Value,
        options: ReleaseOptions<'_>,
    ) -> Result<Value> {
        let revision = draft["revision"]["revision_id"]
            .as_str()
            .unwrap_or_default();
        self.release(&endpoints::PROMOTE, revision, base, options)
            .await
    }
}

impl WatchCommand {
    pub(super) async fn run(self) -> Result<()> {
        if self.file.as_os_str() == STDIN {
            return Err(CliFailure::local(
                "Only a file can be watched: standard input ends.",
            ));
        }
        let slug = self.slug.clone().map_or_else(|| slug_for(&self.file), Ok)?;
        // If the first try fails, later ones would fail as well.
        let mut found = find_frontend(&self.project_option, slug, &self.common).await?;
        found.api = found.api.with_retries();
        let mut watching = FileWatcher::new(vec![self.file.clone()]);
        if !watching.is_whole() {
            self.common.output().print_note(&format!(
                "warning: the folder has more than {MAX_WATCHED} files and folders: not every save is noticed"
            ));
        }
        // A build may take the folder away for a moment.
        let is_site = is_folder(&self.file) || is_media(&self.file);
        let mut ours = match is_site {
            true => self.publish_site_first(&mut found).await?,
            false => self.publish_first(&mut found).await?,
        };
        loop {
            watching.wait_for_change().await;
            let published = match is_site {
                true => self.publish_site_change(&found, Some(&ours)).await,
                false => self.publish_change(&found, Some(&ours)).await,
            };
            match published {
                Ok(now) => ours = now,
                Err(failure)
                    if matches!(
                        failure.exit,
                        FailureExitCode::Conflict | FailureExitCode::Credential
                    ) =>
                {
                    return Err(failure);
                }
                // The file may not render or be missing for a moment; the next save may mend it.
                Err(failure) => report_failure(self.common.json, &failure),
            }
        }
    }

    /// Publishes the file for the first time, and reports its URL; returns the live revision.
    async fn publish_first(&self, found: &mut FrontendHandle) -> Result<String> {
        let there = found
            .api
            .call(&endpoints::FRONTEND, &found.path_parts())
            .send()
            .await;
        let (page, revision) = match there {
            Ok(page) => {
                let revision = self.publish_change(found, None).await?;
                (page, Some(revision))
            }
            Err(failure) if failure.is_not_found() => {
                let source = SourceToPublish::read(&self.file, None)?;
                let body = json!({
                    "content": source.content, "type": source.content_type,
                    "requested_slug": found.slug, "title": source.title,
                });
                let asked = found
                    .api
                    .call(&endpoints::CREATE_FRONTEND, &[&found.project.id]);
                let page = asked.body(body).send().await?;
                (page, None)
            }
            Err(failure) => return Err(failure),
        };
        // If the slug was taken, the server chose another.
        found.slug = member_text(&page, "slug");
        let document = json!({ "url": page["url"], "slug": page["slug"] });
        let url = member_text(&page, "url");
        self.common.output().print_answer(&document, &url)?;
        match revision {
            Some(revision) => Ok(revision),
            None => found.active_revision().await,
        }
    }

    /// Publishes the file if it differs from the live source, which must be `ours`; returns the live revision.
    async fn publish_change(&self, found: &FrontendHandle, ours: Option<&str>) -> Result<String> {
        let base = found.active_revision().await?;
        check_ours(found, ours, &base)?;
        let live = found.source(Some(&base)).await?;
        let source = read_source_of_type(&self.file, live.content_type)?;
        if source.content == live.content {
            return Ok(base);
        }
        let new = NewFrontendSource {
            content: &source.content,
            title: None,
            message: None,
        };
        let draft = found.draft(&base, new).await?;
        found
            .promote(&base, &draft, ReleaseOptions::default())
            .await?;
        let size = TextDifference::between(("", &live.content), ("", &source.content)).size();
        self.common
            .output()
            .print_note(&format!("published {} ({size})", self.file.display()));
        Ok(member_text(&draft["revision"], "revision_id"))
    }
}

async fn find_frontend(
    project_option: &ProjectSelectionArgs,
    slug: String,
    common: &CommonArgs,
) -> Result<FrontendHandle> {
    let (api, project) = project_option.open(&common.remote).await?;
    Ok(FrontendHandle { api, project, slug })
}

/// Checks that the live revision is the one that this command has published.
fn check_ours(found: &FrontendHandle, ours: Option<&str>, live: &str) -> Result<()> {
    match ours {
        Some(ours) if ours != live => Err(CliFailure::new(
            FailureExitCode::Conflict,
            "Somebody else has published",
            format!(
                "`{}` shows another revision now, {live}: look at it, then watch the file again.",
                found.slug
            ),
        )),
        _ => Ok(()),
    }
}

fn slug_for(file: &Path) -> Result<String> {
    slug_of_site(file).ok_or_else(|| {
        CliFailure::local(format!(
            "{} makes no slug: name one with `--slug`.",
            file.display()
        ))
    })
}

fn explain_missing_frontend(failure: CliFailure, found: &FrontendHandle) -> CliFailure {
    match failure.is_not_found() {
        true => CliFailure::new(
            FailureExitCode::NotFound,
            "No such frontend",
            format!(
                "`{}` has no frontend `{}`: name another with `--slug`, or make it with `svc publish FILE --project {} --name {}`.",
                found.project.name, found.slug, found.project.host_label, found.slug
            ),
        ),
        false => failure,
    }
}
