//! `svc publish` and `svc unpublish`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{member_text, pretty_escaped_json, server_note};
use super::progress::TerminalProgressBar;
use super::sites::{
    NewSite, ShareWishes, SiteFolder, SiteOptionArgs, SitePublisher, is_folder, is_media,
    media_site, publishing_hints, read_media, remember_published, share_file, share_folder,
};
use super::source::{STDIN, SourceToPublish};
use super::{CommonArgs, OutputFormat, desktop, endpoints, projects, secret};
use svc_sources::ContentType;

/// Publishes files and folders: as quick shares, or as frontends of a project.
#[derive(Debug, clap::Args)]
pub struct PublishCommand {
    /// The files and folders; a folder is published as a site, and `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Make frontends of this project in place of quick shares: its id, its name or its label
    #[arg(long)]
    project: Option<String>,
    /// The slug that you would like; of one file or folder
    #[arg(long, value_name = "SLUG")]
    name: Option<String>,
    /// The page's title; of one file or folder [default: the content's own]
    #[arg(long)]
    title: Option<String>,
    /// Type of the files [default: as their names say]
    #[arg(long = "type", value_parser = super::content_type_parser())]
    content_type: Option<ContentType>,
    #[command(flatten)]
    site_options: SiteOptionArgs,
    /// How long a share lives, as in 30m, 12h or 2d [default: as long as it may]
    #[arg(long, value_name = "TIME", value_parser = super::parse_seconds, conflicts_with = "project")]
    expires_in: Option<u64>,
    /// The first reader is the last
    #[arg(long, conflicts_with = "project")]
    one_time: bool,
    /// Ask for a password that readers must know, or read it from standard input
    #[arg(long, conflicts_with = "project")]
    password: bool,
    /// Read the password from the first line of a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["project", "password"])]
    password_file: Option<PathBuf>,
    /// Put the link on the clipboard
    #[arg(long)]
    copy: bool,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Deletes a quick share.
#[derive(Debug, clap::Args)]
pub struct UnpublishCommand {
    /// The share's id, as `svc publish` said
    id: String,
    /// Read the token from the first line of a file in place of asking for it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

/// A file or folder that is read.
#[derive(Debug)]
enum Publication {
    /// Text that becomes a page.
    Page(SourceToPublish),
    Folder(SiteFolder),
    /// File that is shown as it is, such as a picture.
    Media(PathBuf),
}

impl Publication {
    fn read(path: &Path, content_type: Option<ContentType>) -> Result<Self> {
        if is_folder(path) {
            return SiteFolder::read(path).map(Self::Folder);
        }
        match content_type {
            None if is_media(path) => Ok(Self::Media(path.to_owned())),
            wanted => SourceToPublish::read(path, wanted).map(Self::Page),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Page(source) => &source.path,
            Self::Folder(site) => &site.path,
            Self::Media(path) => path,
        }
    }
}

impl PublishCommand {
    pub(super) async fn run(self) -> Result<()> {
        self.check_arguments()?;
        let password = match &self.password_file {
            Some(file) => Some(secret::read_from_file("password", file)?),
            None if self.password => Some(secret::prompt("password")?),
            None => None,
        };
        let sources = self
            .files
            .iter()
            .map(|file| Publication::read(file, self.content_type));
        let sources = sources.collect::<Result<Vec<_>>>()?;
        sources.iter().try_for_each(|one| self.check(one))?;
        let remote = &self.common.remote;
        let (api, project) = match &self.project {
            Some(wanted) => {
                let api = ApiClient::new(remote)?;
                let project = projects::find(&api, wanted).await?;
                (api, Some(project))
            }
            // A share has no owner, so an invalid credential must not stop it.
            None => (ApiClient::without_credential(remote)?, None),
        };
        let mut made = Vec::new();
        for source in &sources {
            let published = match &project {
                Some(project) => self.create_frontend(&api, &project.id, source).await,
                None => self.publish_share(&api, source, password.as_deref()).await,
            };
            let mut published = published.map_err(|failure| match source {
                Publication::Page(source) if source.path.as_os_str() != STDIN => {
                    failure.with_file(&source.path)
                }
                Publication::Media(path) => failure.with_file(path),
                _ => failure,
            })?;
            self.report_page(source, &mut published)?;
            made.push(published);
        }
        self.finish(&made)
    }

    /// Checks what the arguments say together.
    fn check_arguments(&self) -> Result<()> {
        let alone = self.name.is_some() || self.title.is_some() || self.site_options.is_given();
        if self.files.len() > 1 && alone {
            return Err(CliFailure::local(
                "`--name`, `--title`, `--fallback` and `--immutable` are for one file or folder: publish them one by one.",
            ));
        }
        let reads_stdin = self.files.iter().any(|file| file.as_os_str() == STDIN);
        if self.password && reads_stdin {
            return Err(CliFailure::local(
                "Standard input cannot be the page and the password: use `--password-file`.",
            ));
        }
        Ok(())
    }

    /// Checks that the options fit what is published.
    fn check(&self, source: &Publication) -> Result<()> {
        let path = source.path().display();
        let site = match source {
            Publication::Folder(site) => Some(site),
            Publication::Page(_) | Publication::Media(_) => None,
        };
        let has_secret = self.one_time || self.password || self.password_file.is_some();
        if has_secret && !matches!(source, Publication::Page(_)) {
            return Err(CliFailure::local(format!(
                "{path} becomes a site of several files, and `--password` and `--one-time` are for one page. Nothing was sent."
            )));
        }
        match (site, self.site_options.options()) {
            (None, Some(_)) => Err(CliFailure::local(format!(
                "`--fallback` and `--immutable` are for a folder, and {path} is a file. Nothing was sent."
            ))),
            (Some(_), _) if self.content_type.is_some() => Err(CliFailure::local(format!(
                "`--type` is for a file, and {path} is a folder. Nothing was sent."
            ))),
            (Some(site), Some(options)) => site.check_options(&options),
            (_, None) => Ok(()),
        }
    }

    async fn publish_share(
        &self,
        api: &ApiClient,
        source: &Publication,
        password: Option<&str>,
    ) -> Result<Value> {
        let _spinner = TerminalProgressBar::spinner("publishing");
        let wishes = ShareWishes {
            name: self.name.as_deref(),
            title: self.title.as_deref(),
            expires_in: self.expires_in,
        };
        let source = match source {
            Publication::Page(source) => source,
            Publication::Folder(site) => {
                let options = self.site_options.options();
                return share_folder(api, site, options.as_ref(), wishes).await;
            }
            Publication::Media(path) => {
                let (name, bytes) = read_media(path)?;
                return share_file(api, (&name, bytes), wishes).await;
            }
        };
        let body = json!({
            "content": source.content,
            "type": source.content_type,
            "name": self.name,
            "title": self.title.as_ref().or(source.title.as_ref()),
            "expires_in": self.expires_in,
            "one_time": self.one_time.then_some(true),
            "password": password,
        });
        api.call(&endpoints::DEPLOY, &[]).body(body).send().await
    }

    async fn create_frontend(
        &self,
        api: &ApiClient,
        project: &str,
        source: &Publication,
    ) -> Result<Value> {
        let source = match source {
            Publication::Page(source) => source,
            Publication::Folder(site) => return self.create_site(api, project, site).await,
            Publication::Media(path) => {
                return self.create_site(api, project, &media_site(path)?).await;
            }
        };
        let _spinner = TerminalProgressBar::spinner("publishing");
        let body = json!({
            "content": source.content,
            "type": source.content_type,
            "requested_slug": self.name.clone().or_else(|| source.slug()),
            "title": self.title.as_ref().or(source.title.as_ref()),
        });
        api.call(&endpoints::CREATE_FRONTEND, &[project])
            .body(body)
            .send()
            .await
    }

    async fn create_site(
        &self,
        api: &ApiClient,
        project: &str,
        site: &SiteFolder,
    ) -> Result<Value> {
        let api = api.clone().with_retries();
        let publisher = SitePublisher {
            api: &api,
            project,
            site,
        };
        let slug = self.name.clone().or_else(|| site.slug());
        let options = self.site_options.options();
        let new = NewSite {
            slug: slug.as_deref(),
            title: self.title.as_deref(),
            options: options.as_ref(),
        };
        let published = publisher.create(new).await?;
        remember_published(&api, project, (site, options.as_ref()), &published);
        Ok(published)
    }

    /// Reports a published page: only its link goes to standard output. Programs find the notes in the document.
    fn report_page(&self, source: &Publication, published: &mut Value) -> Result<()> {
        let out = self.common.output();
        if !out.json {
            out.print_answer(published, &member_text(published, "url"))?;
        }
        if let Some(token) = published.get("delete_token") {
            let (id, until) = (
                member_text(published, "id"),
                member_text(published, "expires_at"),
            );
            out.print_note(&format!(
                "It is there until {until}. To delete it before, `svc unpublish {id}` and this token:\n  {}",
                pretty_escaped_json(token)
            ));
        }
        print_warnings(out, published);
        if let Publication::Folder(site) = source {
            let (slug, url) = (
                member_text(published, "slug"),
                member_text(published, "url"),
            );
            let is_share = self.project.is_none();
            let hints = publishing_hints(site, &slug, &url, is_share);
            let notes: Vec<_> = site.notes.iter().chain(&hints).collect();
            notes.iter().for_each(|note| out.print_note(note));
            if !notes.is_empty() {
                published["notes"] = json!(notes);
            }
        }
        Ok(())
    }

    fn finish(&self, made: &[Value]) -> Result<()> {
        let out = self.common.output();
        if out.json {
            out.print_answer(&json!({ "published": made }), "")?;
        }
        let urls: Vec<_> = made.iter().map(|one| member_text(one, "url")).collect();
        if self.copy && !desktop::copy_to_clipboard(&urls.join("\n")) {
            out.print_note(
                "warning: nothing here copies to a clipboard (pbcopy, wl-copy, xclip, xsel)",
            );
        }
        if self.open && !urls.iter().all(|url| desktop::open_in_browser(url)) {
            out.print_note("warning: nothing here opens a browser (xdg-open, open)");
        }
        Ok(())
    }
}

/// Prints what a server warns of in an answer that has published something.
pub(super) fn print_warnings(out: OutputFormat, published: &Value) {
    for warning in published["warnings"].as_array().into_iter().flatten() {
        let detail = server_note(&member_text(warning, "detail"));
        let place = match warning["line"].as_u64() {
            Some(line) => format!("line {line}: "),
            None => String::new(),
        };
        out.print_note(&format!("warning: {place}{detail}"));
    }
}

impl UnpublishCommand {
    pub(super) async fn run(self) -> Result<()> {
        let token = match &self.token_file {
            Some(file) => secret::read_from_file("token", file)?,
            None => secret::prompt("token")?,
        };
        let api = ApiClient::without_credential(&self.common.remote)?;
        let asked = api
            .call(&endpoints::DELETE_SHARE, &[&self.id])
            .bearer(Some(&token));
        asked
            .send()
            .await
            .map_err(|failure| match failure.is_not_found() {
                true => CliFailure::new(
                    FailureExitCode::NotFound,
                    "Nothing to delete",
                    "There is no share of this id, or the token is another's.",
                ),
                false => failure,
            })?;
        let document = json!({ "id": self.id, "deleted": true });
        self.common
            .output()
            .print_answer(&document, &format!("deleted {}", self.id))
    }
}
