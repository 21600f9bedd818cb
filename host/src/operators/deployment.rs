//! `svc deployment list|show|disable|enable`.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

use super::installation::{Installation, OperationAnswer};
use crate::content::Digest;
use crate::deployments::operators;
use crate::overview::{self, DeploymentFilter, DeploymentKind, sizes};
use crate::terminal::{or_dash, table};

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentOperation {
    /// List shares and frontends, newest first
    List {
        /// Only those of one namespace
        #[arg(long)]
        namespace: Option<String>,
        /// Only those that are taken down
        #[arg(long)]
        disabled: bool,
    },
    /// Say whose a deployment is, what it is made of, and how often it was looked at
    Show {
        /// Where it answers
        slug: String,
    },
    /// Take a deployment down: every route of its slug answers 403
    Disable {
        /// Where it answers
        slug: String,
    },
    /// Put a deployment back
    Enable {
        /// Where it answers
        slug: String,
    },
}

/// A deployment with its sizes.
#[derive(Debug, Serialize)]
struct DeploymentWithSizes {
    #[serde(flatten)]
    deployment: overview::DeploymentListEntry,
    /// Size of its source in bytes; a one-time share has none.
    source_bytes: Option<u64>,
    /// Size of its page in bytes.
    page_bytes: Option<u64>,
}

/// Details of a deployment.
#[derive(Debug, Serialize)]
struct DeploymentDetail {
    #[serde(flatten)]
    sized: DeploymentWithSizes,
    /// SHA-256 of its source; a one-time share has none.
    source_sha256: Option<String>,
    /// SHA-256 of its page as it is stored, or of a site's manifest.
    page_sha256: Option<String>,
    #[serde(flatten)]
    history: overview::DeploymentCounts,
}

impl DeploymentWithSizes {
    fn measure(data: &Path, deployment: overview::DeploymentListEntry) -> anyhow::Result<Self> {
        let page_bytes = match deployment.one_time {
            true => sizes::one_time_share_bytes(data, &deployment.id)?,
            false => sizes::object_bytes(data, deployment.page.as_ref())?,
        };
        Ok(Self {
            source_bytes: sizes::object_bytes(data, deployment.source.as_ref())?,
            page_bytes,
            deployment,
        })
    }
}

impl DeploymentOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::List {
                namespace,
                disabled,
            } => list(at, namespace, disabled).await,
            Self::Show { slug } => show(at, slug).await,
            Self::Disable { slug } => switch_deployment(at, &slug, true).await,
            Self::Enable { slug } => switch_deployment(at, &slug, false).await,
        }
    }
}

async fn list(
    at: &Installation,
    namespace: Option<String>,
    disabled: bool,
) -> anyhow::Result<OperationAnswer> {
    let filter = DeploymentFilter {
        namespace,
        disabled,
        slug: None,
    };
    let found = overview::deployments(&at.control, at.clock.now(), filter).await?;
    let data = at.data.clone();
    // Reads a file's size for each, so it runs on a blocking thread.
    let sized = tokio::task::spawn_blocking(move || {
        let sized = found
            .into_iter()
            .map(|one| DeploymentWithSizes::measure(&data, one));
        sized.collect::<anyhow::Result<Vec<_>>>()
    });
    let sized = sized.await??;
    let rows = sized.iter().map(|sized| {
        let one = &sized.deployment;
        [
            one.slug.clone(),
            kind_name(one.kind).to_owned(),
            one.content_type.clone(),
            or_dash(one.namespace.as_ref()),
            one.visits.to_string(),
            or_dash(sized.page_bytes),
            one.created_at.to_string(),
            or_dash(one.expires_at),
            state_text(one),
        ]
    });
    let head = [
        "slug",
        "kind",
        "type",
        "namespace",
        "visits",
        "bytes",
        "created",
        "expires",
        "state",
    ];
    let text = table(head, rows);
    OperationAnswer::new(&serde_json::json!({ "deployments": sized }), text)
}

async fn show(at: &Installation, slug: String) -> anyhow::Result<OperationAnswer> {
    let filter = DeploymentFilter {
        slug: Some(slug.clone()),
        ..DeploymentFilter::default()
    };
    let found = overview::deployments(&at.control, at.clock.now(), filter).await?;
    let one = found
        .into_iter()
        .next()
        .with_context(|| format!("nothing is deployed at `{slug}`"))?;
    let history = overview::deployment_counts(&at.control, &one).await?;
    let sha256 = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
    let shown = DeploymentDetail {
        source_sha256: sha256(one.source),
        page_sha256: sha256(one.page),
        sized: DeploymentWithSizes::measure(&at.data, one)?,
        history,
    };
    let one = &shown.sized.deployment;
    let lines = [
        ("slug", one.slug.clone()),
        ("kind", kind_name(one.kind).to_owned()),
        ("type", one.content_type.clone()),
        ("title", one.title.escape_debug().to_string()),
        ("namespace", or_dash(one.namespace.as_ref())),
        ("project", or_dash(one.project_id)),
        ("state", state_text(one)),
        ("visits", one.visits.to_string()),
        (
            "source",
            format!("{} bytes", or_dash(shown.sized.source_bytes)),
        ),
        ("page", format!("{} bytes", or_dash(shown.sized.page_bytes))),
        ("sha256", or_dash(shown.source_sha256.as_ref())),
        ("stored as", or_dash(shown.page_sha256.as_ref())),
        ("revisions", history.revisions.to_string()),
        ("releases", history.releases.to_string()),
        ("reports", format!("{} open", history.open_reports)),
        ("created", one.created_at.to_string()),
        ("expires", or_dash(one.expires_at)),
        ("id", one.id.to_string()),
    ];
    let text = lines
        .map(|(name, value)| format!("{name:10} {value}"))
        .join("\n");
    OperationAnswer::new(&shown, text)
}

async fn switch_deployment(
    at: &Installation,
    slug: &str,
    disabled: bool,
) -> anyhow::Result<OperationAnswer> {
    let verb = if disabled { "disable" } else { "enable" };
    let served = at.server.as_ref().map(|app| Arc::clone(&app.config));
    if !operators::set_disabled(&at.control, &at.clock, slug, disabled, served).await? {
        bail!("nothing is deployed at `{slug}`");
    }
    let document = serde_json::json!({ "slug": slug, "disabled": disabled });
    let answer = OperationAnswer::new(&document, format!("{verb}d {slug}"))?;
    Ok(answer.logged_as(format!("deployment {verb} {slug}")))
}

fn kind_name(kind: DeploymentKind) -> &'static str {
    match kind {
        DeploymentKind::Share => "share",
        DeploymentKind::Frontend => "frontend",
    }
}

/// Describes the special states of a deployment.
fn state_text(one: &overview::DeploymentListEntry) -> String {
    let special = [
        (one.disabled_at.is_some(), "disabled"),
        (one.protected, "protected"),
        (one.one_time, "one-time"),
    ];
    let said: Vec<_> = special
        .into_iter()
        .filter_map(|(holds, word)| holds.then_some(word))
        .collect();
    match said.is_empty() {
        true => "-".to_owned(),
        false => said.join(", "),
    }
}
