//! Environments of a manifest: the servers that a folder is for, and what differs there.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Manifest;
use super::domains::fault_of_domains;
use super::faults::ManifestFault;
use super::prices::{PriceEntry, fault_of_prices, prices_of_environment};
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::profile::{FolderTarget, parse_server_url};

/// The most characters of an environment's name.
const MAX_NAME: usize = 64;

/// An environment in a manifest. What it leaves out is as at the top of the manifest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvironmentEntry {
    /// Address of the server.
    pub(super) server: String,
    /// The profile of `svc login` to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    /// The project's name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) home: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) realtime: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agents: Option<bool>,
    /// Domains there, in place of those at the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) domains: Option<Vec<String>>,
    /// Prices that take the places of those with the same keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) prices: Vec<PriceEntry>,
}

/// Environments by their names.
pub(super) type Environments = BTreeMap<String, EnvironmentEntry>;

impl Manifest {
    /// Returns the manifest as it counts in an environment; without one, as it stands.
    ///
    /// # Errors
    /// When the manifest has no such environment.
    pub(crate) fn in_environment(mut self, name: Option<&str>) -> Result<Self> {
        let Some(name) = name else {
            return Ok(self);
        };
        let Some(chosen) = self.env.remove(name) else {
            return Err(unknown_environment(name, &self.env));
        };
        let EnvironmentEntry {
            server,
            profile,
            project,
            workspace,
            description,
            home,
            realtime,
            agents,
            domains,
            prices,
        } = chosen;
        self.server = Some(server);
        // A profile belongs to its server.
        self.profile = profile;
        self.project = project.unwrap_or(self.project);
        self.workspace = workspace.or(self.workspace);
        self.description = description.or(self.description);
        self.home = home.or(self.home);
        self.realtime = realtime.or(self.realtime);
        self.agents = agents.or(self.agents);
        self.domains = domains.unwrap_or(self.domains);
        self.prices = prices_of_environment(&self.prices, &prices);
        self.environment = Some(name.to_owned());
        Ok(self)
    }

    /// Returns the server and the profile that the manifest names, to be held against the login.
    ///
    /// # Errors
    /// When the address is not valid.
    pub(crate) fn target(&self) -> Result<FolderTarget> {
        Ok(FolderTarget {
            server: self.server.as_deref().map(parse_server_url).transpose()?,
            profile: self.profile.clone(),
            environment: self.environment.clone(),
        })
    }

    /// Finds the first fault of the environments, the addresses, the domains and the prices.
    pub(super) fn fault_of_environments(&self) -> Option<ManifestFault> {
        let is_name = |name: &str| {
            let may_have = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            (1..=MAX_NAME).contains(&name.len()) && name.chars().all(may_have)
        };
        if let Some(name) = self.env.keys().find(|name| !is_name(name)) {
            let detail = format!(
                "The environment `{name}` cannot have that name: use 1 to {MAX_NAME} of a-z, A-Z, 0-9, - and _."
            );
            return Some(ManifestFault::new(name, detail));
        }
        let homes = self.env.values().map(|one| &one.home).chain([&self.home]);
        let home = homes.flatten().find(|home| self.lacks_page(home));
        if let Some(home) = home {
            let detail = format!("`home` is `{home}`, which is none of its pages.");
            return Some(ManifestFault::new(home, detail));
        }
        let servers = self.env.values().map(|one| Some(&one.server));
        let mut servers = servers.chain([self.server.as_ref()]).flatten();
        let fault = servers.find_map(|server| {
            let failure = parse_server_url(server).err()?;
            let detail = format!("`server`: {}", failure.detail());
            Some(ManifestFault::new(server, detail))
        });
        let domains = self.env.values().filter_map(|one| one.domains.as_ref());
        let mut domains = domains.chain([&self.domains]);
        let fault = fault.or_else(|| domains.find_map(|names| fault_of_domains(names)));
        if fault.is_some() {
            return fault;
        }
        let prices = self.env.values().map(|one| &one.prices);
        let mut prices = prices.chain([&self.prices]);
        prices.find_map(|prices| fault_of_prices(prices))
    }

    fn lacks_page(&self, slug: &str) -> bool {
        !slug.is_empty() && !self.pages.contains_key(slug)
    }
}

/// Failure of an environment that a manifest does not have.
fn unknown_environment(name: &str, known: &Environments) -> CliFailure {
    let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
    let there = match names.is_empty() {
        true => "svc.toml has none: `[env.NAME]` with `server` makes one.".to_owned(),
        false => format!("svc.toml has {}.", names.join(", ")),
    };
    CliFailure::new(
        FailureExitCode::NotFound,
        "No such environment",
        format!(
            "There is no environment `{name}`: {there} Leave `--env` out, and SVC_ENV unset, for what svc.toml says at its top."
        ),
    )
}

/// Failure of an environment that is asked for where no manifest is.
pub(crate) fn no_manifest_for(name: &str, path: &Path) -> CliFailure {
    CliFailure::new(
        FailureExitCode::NotFound,
        "No such environment",
        format!(
            "{} is not there, which would say what the environment `{name}` is.",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests;
