//! `svc publish` and `svc unpublish`.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::api::ApiClient;
use super::error::{CliFailure, FailureExitCode, Result};
use super::output::{member_text, pretty_escaped_json, server_note};
use super::progress::TerminalProgressBar;
use super::source::{STDIN, SourceToPublish};
use super::{CommonArgs, desktop, endpoints, projects, secret};
use svc_sources::ContentType;

/// Publishes files: as quick shares, or as frontends of a project.
#[derive(Debug, clap::Args)]
pub struct PublishCommand {
    /// The files; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Make frontends of this project in place of quick shares: its id, its name or its label
    #[arg(long)]
    project: Option<String>,
    /// The slug that you would like; of one file
    #[arg(long, value_name = "SLUG")]
    name: Option<String>,
    /// The page's title; of one file [default: the content's own]
    #[arg(long)]
    title: Option<String>,
    /// Type of the files [default: as their names say]
    #[arg(long = "type", value_parser = super::content_type_parser())]
    content_type: Option<ContentType>,
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

impl PublishCommand {
    pub(super) async fn run(self) -> Result<()> {
        let alone = self.name.is_some() || self.title.is_some();
        if self.files.len() > 1 && alone {
            return Err(CliFailure::local(
                "`--name` and `--title` are for one file: publish the files one by one.",
            ));
        }
        let reads_stdin = self.files.iter().any(|file| file.as_os_str() == STDIN);
        if self.password && reads_stdin {
            return Err(CliFailure::local(
                "Standard input cannot be the page and the password: use `--password-file`.",
            ));
        }
        let password = match &self.password_file {
            Some(file) => Some(secret::read_from_file("password", file)?),
            None if self.password => Some(secret::prompt("password")?),
            None => None,
        };
        let sources = self
            .files
            .iter()
            .map(|file| SourceToPublish::read(file, self.content_type));
        let sources = sources.collect::<Result<Vec<_>>>()?;
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
            let spinner = TerminalProgressBar::spinner("publishing");
            let published = match &project {
                Some(project) => self.create_frontend(&api, &project.id, source).await,
                None => self.publish_share(&api, source, password.as_deref()).await,
            };
            drop(spinner);
            let published =
                published.map_err(|failure| match source.path.as_os_str() == STDIN {
                    true => failure,
                    false => failure.with_file(&source.path),
                })?;
            self.report_page(&published)?;
            made.push(published);
        }
        self.finish(&made)
    }

    async fn publish_share(
        &self,
        api: &ApiClient,
        source: &SourceToPublish,
        password: Option<&str>,
    ) -> Result<Value> {
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
        source: &SourceToPublish,
    ) -> Result<Value> {
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

    /// Reports a published page: only its link goes to standard output.
    fn report_page(&self, published: &Value) -> Result<()> {
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
        for warning in published["warnings"].as_array().into_iter().flatten() {
            out.print_note(&format!(
                "warning: line {}: {}",
                server_note(&member_text(warning, "line")),
                server_note(&member_text(warning, "detail"))
            ));
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
