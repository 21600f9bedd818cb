//! `svc domain list --data …`, `svc domain disable` and `svc domain enable`.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::projects::domains::operators;
use crate::terminal::{or_dash, table};
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainOperation {
    /// Lists the domains of all projects.
    List,
    /// Takes a name down in all projects.
    Disable { name: String },
    /// Lets projects prove a name again.
    Enable { name: String },
}

/// A domain as operators see it.
#[derive(Debug, Serialize)]
struct ListedDomain {
    name: String,
    project_id: ProjectId,
    state: &'static str,
    disabled: bool,
    redirect_to: Option<String>,
    created_at: Timestamp,
    verified_at: Option<Timestamp>,
    checked_at: Option<Timestamp>,
}

impl DomainOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::List => list(at).await,
            Self::Disable { name } => switch(at, &name, true).await,
            Self::Enable { name } => switch(at, &name, false).await,
        }
    }
}

async fn list(at: &Installation) -> anyhow::Result<OperationAnswer> {
    let found = operators::list(&at.control).await?.into_iter();
    let listed: Vec<ListedDomain> = found
        .map(|(domain, disabled)| ListedDomain {
            project_id: domain.project,
            state: domain.state.as_str(),
            disabled,
            redirect_to: domain.redirect_to,
            created_at: domain.created_at,
            verified_at: domain.verified_at,
            checked_at: domain.checked_at,
            name: domain.name,
        })
        .collect();
    let rows = listed.iter().map(|one| {
        [
            one.name.clone(),
            if one.disabled { "disabled" } else { one.state }.to_owned(),
            one.project_id.to_string(),
            or_dash(one.redirect_to.as_ref()),
            or_dash(one.verified_at),
            one.created_at.to_string(),
        ]
    });
    let head = [
        "domain",
        "state",
        "project",
        "redirects to",
        "verified",
        "created",
    ];
    let text = table(head, rows);
    OperationAnswer::new(&serde_json::json!({ "domains": listed }), text)
}

async fn switch(at: &Installation, name: &str, disabled: bool) -> anyhow::Result<OperationAnswer> {
    let verb = if disabled { "disable" } else { "enable" };
    let served = at.server.as_ref().map(|app| Arc::clone(&app.config));
    let switched = operators::set_disabled(&at.control, &at.clock, name, disabled, served);
    let switched = switched.await.with_context(|| format!("{verb} {name}"))?;
    let Some(name) = switched else {
        bail!("`{}` is no host name of a domain", name.escape_debug());
    };
    let document = serde_json::json!({ "name": name, "disabled": disabled });
    let answer = OperationAnswer::new(&document, format!("{verb}d {name}"))?;
    Ok(answer.logged_as(format!("domain {verb} {name}")))
}
