//! State of a project on the server, to compare a folder with.

use serde::Deserialize;
use serde_json::Value;

use super::{LocalPage, ProjectFolder};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::projects::{self, RemoteProject};
use svc_base::names::append_suffix_within_limit;
use svc_sources::ContentType;

/// The shortest random suffix.
const MIN_RANDOM_SUFFIX: usize = 6;

/// A frontend on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteFrontend {
    pub(super) slug: String,
    pub(super) url: String,
    #[serde(rename = "type")]
    pub(super) content_type: ContentType,
    pub(super) title: String,
    pub(super) state: String,
    pub(super) content_sha256: Option<String>,
}

/// A backend on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteBackend {
    pub(super) migrations: Vec<AppliedMigration>,
    pub(super) actions: Vec<RemoteAction>,
    pub(super) realtime: RemoteRooms,
    /// Older servers do not send this.
    #[serde(default)]
    pub(super) agents: bool,
}

impl RemoteBackend {
    /// Version of a script in the ledger.
    pub(super) fn version(&self, checksum: &str) -> Option<u32> {
        let mut ledger = self.migrations.iter();
        let applied = ledger.find(|applied| applied.checksum == checksum);
        applied.map(|applied| applied.version)
    }
}

/// A migration in the ledger.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AppliedMigration {
    pub(super) version: u32,
    pub(super) checksum: String,
    pub(super) sql: String,
}

/// An action on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteAction {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) checksum: String,
}

/// State of the rooms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteRooms {
    pub(super) enabled: bool,
}

/// A project with its live frontends and its backend.
#[derive(Clone, Debug)]
pub(super) struct RemoteProjectState {
    pub(super) project: RemoteProject,
    /// Live frontends, oldest first.
    pub(super) frontends: Vec<RemoteFrontend>,
    pub(super) backend: Option<RemoteBackend>,
}

#[derive(Debug, Deserialize)]
struct RemoteFrontendList {
    frontends: Vec<RemoteFrontend>,
}

impl RemoteProjectState {
    /// Finds the project by its name; `None` if there is none.
    ///
    /// # Errors
    /// When several projects have that name.
    pub(super) async fn find(api: &ApiClient, name: &str) -> Result<Option<Self>> {
        let mut named: Vec<_> = projects::fetch_all(api).await?;
        named.retain(|project| project.name == name);
        match named.len() {
            0 => Ok(None),
            1 => Self::read(api, named.remove(0)).await.map(Some),
            several => Err(CliFailure::new(
                FailureExitCode::Conflict,
                "Several projects",
                format!(
                    "{several} projects are called `{name}`: rename all but one, for the manifest means a project by its name."
                ),
            )),
        }
    }

    /// Reads the frontends and the backend of a project.
    ///
    /// # Errors
    /// Failures of the server.
    pub(super) async fn read(api: &ApiClient, project: RemoteProject) -> Result<Self> {
        let listed = api.call(&endpoints::FRONTENDS, &[&project.id]);
        let mut frontends = listed
            .send_and_parse::<RemoteFrontendList>()
            .await?
            .frontends;
        frontends.retain(|frontend| frontend.state == "active");
        let backend = match project.backend.as_ref() {
            Some(Value::Null) | None => None,
            Some(_) => Some(
                api.call(&endpoints::BACKEND, &[&project.id])
                    .send_and_parse()
                    .await?,
            ),
        };
        Ok(Self {
            project,
            frontends,
            backend,
        })
    }

    /// Finds the frontend of a page: by its slug, else by its slug with a suffix that the server added.
    ///
    /// # Errors
    /// When several frontends match.
    pub(super) fn find_frontend(
        &self,
        page: &LocalPage,
        folder: &ProjectFolder,
    ) -> Result<Option<&RemoteFrontend>> {
        self.find_frontend_by_slug(&page.slug, |slug| folder.manifest.pages.contains_key(slug))
    }

    /// Finds the frontend of a slug, with or without a suffix. `is_other` excludes slugs of other pages.
    ///
    /// # Errors
    /// When several frontends match.
    pub(super) fn find_frontend_by_slug(
        &self,
        wanted: &str,
        is_other: impl Fn(&str) -> bool,
    ) -> Result<Option<&RemoteFrontend>> {
        let exact = self.frontends.iter().find(|one| one.slug == wanted);
        if exact.is_some() {
            return Ok(exact);
        }
        let suffixed = self
            .frontends
            .iter()
            .filter(|one| is_suffixed(&one.slug, wanted) && !is_other(&one.slug));
        match suffixed.collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            ref several => {
                let slugs: Vec<_> = several
                    .iter()
                    .map(|one| format!("`{}`", one.slug))
                    .collect();
                Err(CliFailure::new(
                    FailureExitCode::Conflict,
                    "Several pages",
                    format!(
                        "The page `{wanted}` may be {}: name it in svc.toml by the slug that it has.",
                        slugs.join(" or ")
                    ),
                ))
            }
        }
    }
}

/// Whether a slug is `wanted` with a suffix of the server: a number, or a random word, which has no vowels.
fn is_suffixed(slug: &str, wanted: &str) -> bool {
    let Some((_, suffix)) = slug.rsplit_once('-') else {
        return false;
    };
    let is_number =
        !suffix.is_empty() && suffix.len() < 3 && suffix.bytes().all(|b| b.is_ascii_digit());
    let is_random =
        suffix.len() >= MIN_RANDOM_SUFFIX && !suffix.contains(['a', 'e', 'i', 'o', 'u']);
    (is_number || is_random) && append_suffix_within_limit(wanted, suffix) == slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_suffixes_count() {
        for (slug, is) in [
            ("book-2", true),
            ("book-31", true),
            ("book-2k8bcd", true),
            ("book", false),
            ("book-", false),
            ("book-shop", false),
            ("book-orders", false),
            ("book-2-b", false),
            ("books-2", false),
        ] {
            assert_eq!(is_suffixed(slug, "book"), is, "{slug}");
        }
        let long = "b".repeat(63);
        assert!(is_suffixed(&append_suffix_within_limit(&long, "2"), &long));
    }
}
