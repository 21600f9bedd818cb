//! State of a project on the server, to compare a folder with.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::pages::{FrontendType, LocalPage};
use super::prices::Interval;
use super::suffixes::{PagesApart, is_suffixed, several_pages};
use super::{Manifest, ProjectFolder};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::Result;
use crate::file_rules::FileRules;
use crate::projects::{self, RemoteProject};
use crate::sites::RemoteSite;

/// A frontend on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteFrontend {
    #[serde(default)]
    pub(super) id: String,
    pub(super) slug: String,
    pub(super) url: String,
    #[serde(rename = "type")]
    pub(super) frontend_type: FrontendType,
    pub(super) title: String,
    pub(super) state: String,
    pub(super) content_sha256: Option<String>,
    /// Absent for a page that has no history yet.
    pub(super) active_revision_id: Option<String>,
    pub(super) updated_at: Option<String>,
}

/// A backend on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteBackend {
    #[serde(default)]
    pub(super) id: String,
    pub(super) migrations: Vec<AppliedMigration>,
    pub(super) actions: Vec<RemoteAction>,
    pub(super) realtime: RemoteRooms,
    /// Older servers do not send this.
    #[serde(default)]
    pub(super) agents: bool,
}

impl RemoteBackend {
    /// Lists the migrations of the ledger that files have, in their order.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &AppliedMigration> {
        self.migrations.iter().filter(|one| one.has_statement())
    }

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
    /// Purpose of the migration; `svc apply` writes the name of its file there.
    #[serde(default)]
    pub(super) note: Option<String>,
}

impl AppliedMigration {
    /// Whether the entry has a statement. The entry of a restore is a comment alone, and belongs to no file.
    pub(super) fn has_statement(&self) -> bool {
        let is_blank = |line: &str| line.is_empty() || line.starts_with("--");
        !self.sql.lines().all(|line| is_blank(line.trim()))
    }
}

/// An action on the server.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteAction {
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: u64,
    pub(super) sql: String,
    pub(super) checksum: String,
    #[serde(default)]
    pub(super) defaults: Map<String, Value>,
    /// Rules for visitors' files; an action that has nothing to do with them has none.
    files: Option<FileRules>,
    pub(super) created_at: Option<String>,
}

impl RemoteAction {
    /// Rules for visitors' files.
    pub(super) fn files(&self) -> FileRules {
        self.files.clone().unwrap_or_default()
    }
}

/// State of the rooms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteRooms {
    pub(super) enabled: bool,
}

/// An active price on the server.
#[derive(Clone, Debug)]
pub(super) struct RemotePrice {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) product: String,
    pub(super) description: Option<String>,
    pub(super) label: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    /// How often it is paid; once, if none.
    pub(super) interval: Option<Interval>,
    pub(super) created_at: Option<String>,
}

/// A project with its live frontends and its backend.
#[derive(Clone, Debug)]
pub(super) struct RemoteProjectState {
    pub(super) project: RemoteProject,
    /// Live frontends, oldest first.
    pub(super) frontends: Vec<RemoteFrontend>,
    pub(super) backend: Option<RemoteBackend>,
    /// Active prices with keys; `None` if nobody has asked for them.
    pub(super) prices: Option<Vec<RemotePrice>>,
    /// Frontends whose slugs are pages' with a suffix, and which are others' pages.
    pub(super) apart: PagesApart,
}

#[derive(Debug, Deserialize)]
struct RemoteFrontendList {
    frontends: Vec<RemoteFrontend>,
}

#[derive(Debug, Deserialize)]
struct RemoteCatalog {
    products: Vec<RemoteProduct>,
}

#[derive(Debug, Deserialize)]
struct RemoteProduct {
    name: String,
    description: Option<String>,
    prices: Vec<RemoteProductPrice>,
}

#[derive(Debug, Deserialize)]
struct RemoteProductPrice {
    id: String,
    key: Option<String>,
    label: String,
    amount: u64,
    currency: String,
    recurring: bool,
    /// Absent where a recurring price is paid every month.
    interval: Option<Interval>,
    active: bool,
    created_at: Option<String>,
}

impl RemoteCatalog {
    /// Lists the active prices that have keys.
    fn into_prices(self) -> Vec<RemotePrice> {
        let mut found = Vec::new();
        for product in self.products {
            for price in product.prices.into_iter().filter(|price| price.active) {
                let Some(key) = price.key else {
                    continue;
                };
                found.push(RemotePrice {
                    id: price.id,
                    key,
                    product: product.name.clone(),
                    description: product.description.clone(),
                    label: price.label,
                    amount: price.amount,
                    currency: price.currency,
                    interval: price
                        .recurring
                        .then(|| price.interval.unwrap_or(Interval::Month)),
                    created_at: price.created_at,
                });
            }
        }
        found
    }
}

/// Reads the files of a site: those of a revision, else the live ones.
///
/// # Errors
/// Failures of the server, and an answer that is none.
pub(super) async fn fetch_site(
    api: &ApiClient,
    (project, slug): (&str, &str),
    revision: Option<&str>,
) -> Result<RemoteSite> {
    let asked = api.call(&endpoints::CONTENT, &[project, slug]);
    RemoteSite::parse(asked.query("revision_id", revision).send().await?)
}

impl RemoteProjectState {
    /// Finds the project of a manifest; `None` if there is none.
    ///
    /// # Errors
    /// When several projects have its name.
    pub(super) async fn find(api: &ApiClient, manifest: &Manifest) -> Result<Option<Self>> {
        let Some(project) = projects::find_of_manifest(api, manifest).await? else {
            return Ok(None);
        };
        let mut state = Self::read(api, project).await?;
        if !manifest.prices.is_empty() {
            state.fetch_prices(api).await?;
        }
        Ok(Some(state))
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
            prices: None,
            apart: PagesApart::default(),
        })
    }

    /// Reads the prices of the project.
    ///
    /// # Errors
    /// Failures of the server.
    pub(super) async fn fetch_prices(&mut self, api: &ApiClient) -> Result<()> {
        let asked = api.call(&endpoints::CATALOG, &[&self.project.id]);
        let catalog: RemoteCatalog = asked.send_and_parse().await?;
        self.prices = Some(catalog.into_prices());
        Ok(())
    }

    /// Finds an action by its name.
    pub(super) fn action(&self, name: &str) -> Option<&RemoteAction> {
        let mut actions = self.backend.iter().flat_map(|backend| &backend.actions);
        actions.find(|action| action.name == name)
    }

    /// Finds an active price by its key.
    pub(super) fn price(&self, key: &str) -> Option<&RemotePrice> {
        self.prices.iter().flatten().find(|price| price.key == key)
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
        let suffixed = self.frontends.iter().filter(|one| {
            is_suffixed(&one.slug, wanted)
                && !is_other(&one.slug)
                && !self.apart.has(wanted, &one.slug)
        });
        match suffixed.collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            ref several => {
                let slugs: Vec<_> = several.iter().map(|one| one.slug.as_str()).collect();
                Err(several_pages(wanted, &slugs))
            }
        }
    }
}
