//! The services of deployments; each is built from earlier ones.

use std::sync::Arc;

use prometheus_client::registry::Registry;

use super::services::ServiceDependencies;
use crate::content::{
    ContentLocation, ContentStore, OneTimeFileDirectory, OneTimePages, StoreConnector,
};
use crate::deployments::blocked::BlockedContent;
use crate::deployments::collection::ContentGarbageCollector;
use crate::deployments::files::ProjectFiles;
use crate::deployments::frontends::Frontends;
use crate::deployments::operators::settle_content_location;
use crate::deployments::publication::runtime::RuntimeScripts;
use crate::deployments::publication::{CapacityChecker, PublicationPipeline, SlugReservations};
use crate::deployments::reports::AbuseReportService;
use crate::deployments::rerender::Rerenderer;
use crate::deployments::revisions::Revisions;
use crate::deployments::serving::{ExpiredShareRemover, PageService};
use crate::deployments::shares::Shares;
use svc_base::random::RandomSourceError;
use svc_sandbox::Sandbox;

/// Services of deployments.
pub(super) struct DeploymentServices {
    pub(super) content: ContentStore,
    pub(super) serving: Arc<PageService>,
    pub(super) expiry: ExpiredShareRemover,
    pub(super) runtimes: Arc<RuntimeScripts>,
    pub(super) pipeline: Arc<PublicationPipeline>,
    pub(super) capacity: CapacityChecker,
    pub(super) files: Arc<ProjectFiles>,
    pub(super) frontends: Arc<Frontends>,
    pub(super) revisions: Arc<Revisions>,
    pub(super) shares: Arc<Shares>,
    pub(super) rerenderer: Arc<Rerenderer>,
    pub(super) collector: Arc<ContentGarbageCollector>,
    pub(super) reports: Arc<AbuseReportService>,
}

/// Values that all publishing services share.
struct PublishingDependencies {
    files: Arc<ProjectFiles>,
    runtimes: Arc<RuntimeScripts>,
    pipeline: Arc<PublicationPipeline>,
    capacity: CapacityChecker,
    slugs: SlugReservations,
}

impl DeploymentServices {
    /// Returns the services that end what a project has published.
    pub(super) fn of_projects(&self) -> (Arc<Frontends>, Arc<ProjectFiles>) {
        (Arc::clone(&self.frontends), Arc::clone(&self.files))
    }

    /// Opens the content, and makes the services.
    pub(super) async fn open(
        foundation: &ServiceDependencies,
        sandbox: &Sandbox,
    ) -> anyhow::Result<Self> {
        let content = open_content(foundation).await?;
        Self::new(foundation, sandbox, content)
    }

    fn new(
        foundation: &ServiceDependencies,
        sandbox: &Sandbox,
        content: ContentStore,
    ) -> anyhow::Result<Self> {
        let infra = &foundation.infra;
        let once = open_one_time_pages(foundation)?;
        // It comes before the pages, so that it knows first what a change blocks.
        let blocked = BlockedContent::following(&infra.control);
        let stored = (content.clone(), blocked.clone());
        let serving = Arc::new(page_service(foundation, sandbox, stored)?);
        let expiry = ExpiredShareRemover::new(infra.clone(), once.clone());
        let stored = (content.clone(), blocked);
        let shared = PublishingDependencies::new(foundation, sandbox, stored, &expiry);
        let (pipeline, files, capacity) = (shared.pipeline, shared.files, shared.capacity);
        let shares = Shares::new(
            infra.clone(),
            once,
            sandbox.clone(),
            Arc::clone(&pipeline),
            Arc::clone(&files),
            capacity.clone(),
            shared.slugs.clone(),
        );
        let frontends = Arc::new(Frontends::new(
            infra.clone(),
            Arc::clone(&pipeline),
            Arc::clone(&files),
            capacity.clone(),
            shared.slugs,
        ));
        Ok(Self {
            revisions: Arc::new(Revisions::new(
                infra.clone(),
                sandbox.clone(),
                Arc::clone(&pipeline),
                capacity.clone(),
                Arc::clone(&serving),
                Arc::clone(&files),
                Arc::clone(&frontends),
            )),
            shares: Arc::new(shares),
            rerenderer: Arc::new(Rerenderer::new(
                infra.clone(),
                sandbox.clone(),
                Arc::clone(&pipeline),
                capacity.clone(),
            )),
            collector: Arc::new(collector(foundation, &content)),
            reports: Arc::new(AbuseReportService::new(infra.clone())),
            content,
            serving,
            expiry,
            runtimes: shared.runtimes,
            pipeline,
            capacity,
            files,
            frontends,
        })
    }

    /// Adds the numbers of these services to the metrics of the server.
    pub(super) fn register(&self, registry: &mut Registry) {
        self.serving.register(registry);
        self.pipeline.register(registry);
    }
}

impl PublishingDependencies {
    fn new(
        foundation: &ServiceDependencies,
        sandbox: &Sandbox,
        (content, blocked): (ContentStore, BlockedContent),
        expiry: &ExpiredShareRemover,
    ) -> Self {
        let (infra, holder_key) = (&foundation.infra, foundation.secrets.holders.clone());
        let runtimes = Arc::new(RuntimeScripts::new(infra.clone(), content.clone()));
        let pipeline = Arc::new(PublicationPipeline::new(
            infra.clone(),
            content.clone(),
            sandbox.clone(),
            Arc::clone(&runtimes),
            blocked,
        ));
        let capacity = CapacityChecker::new(infra.clone(), content.clone(), holder_key);
        Self {
            files: Arc::new(ProjectFiles::new(
                infra.clone(),
                content.clone(),
                Arc::clone(&pipeline),
                capacity.clone(),
            )),
            pipeline,
            runtimes,
            capacity,
            slugs: SlugReservations::new(infra.clone(), expiry.clone()),
        }
    }
}

/// Makes the service of the pages at their slugs.
fn page_service(
    foundation: &ServiceDependencies,
    sandbox: &Sandbox,
    stored: (ContentStore, BlockedContent),
) -> Result<PageService, RandomSourceError> {
    let infra = foundation.infra.clone();
    let unlock_key = foundation.secrets.unlock.clone();
    let activity = Arc::clone(&foundation.activity);
    PageService::new(infra, stored, sandbox.clone(), (unlock_key, activity))
}

/// Makes the collector of unused content.
fn collector(foundation: &ServiceDependencies, content: &ContentStore) -> ContentGarbageCollector {
    let collector = ContentGarbageCollector::new(foundation.infra.clone(), content.clone());
    match foundation.cluster {
        Some(_) => collector.shared_by_nodes(),
        None => collector,
    }
}

/// Opens the pages of one-time shares, which nodes have in their bucket.
fn open_one_time_pages(foundation: &ServiceDependencies) -> anyhow::Result<OneTimePages> {
    if let Some(node) = &foundation.cluster {
        return Ok(OneTimePages::Objects(node.bucket().one_time_pages()));
    }
    let directory = foundation.infra.config.data.join("once");
    Ok(OneTimePages::Files(OneTimeFileDirectory::open(&directory)?))
}

/// Opens the store of content. A node's is the bucket of all, which its start has checked; another one is the configured store, which
/// must have all content that rows name.
async fn open_content(foundation: &ServiceDependencies) -> anyhow::Result<ContentStore> {
    if let Some(node) = &foundation.cluster {
        return Ok(node.content());
    }
    let infra = &foundation.infra;
    let (data, limits) = (&infra.config.data, &infra.config.limits);
    let place = ContentLocation::new(data, infra.config.content_url.as_ref());
    let before = ContentLocation::read_recorded(data)?;
    let access = infra.config.s3.as_ref();
    let connector = StoreConnector::new(foundation.outbound.clone(), limits.page_bytes);
    let content = place
        .open(&before, access, &connector, &infra.random)
        .await?;
    settle_content_location(&infra.control, &content, &place, &before).await?;
    Ok(content)
}
