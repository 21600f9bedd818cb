//! The application: all services, and the state that handlers share.

mod deployments;
mod duties;
mod node;
mod services;

use std::sync::Arc;

use axum::extract::FromRef;

use self::services::{DomainServices, ServiceDependencies};
use crate::access::Authenticator;
use crate::access::idempotency::IdempotencyService;
use crate::accounts::Accounts;
use crate::activity::Activity;
use crate::backends::calls::ActionCalls;
use crate::backends::calls::routes::CallServices;
use crate::backends::export::BackendExporter;
use crate::backends::history::BackendHistoryService;
use crate::backends::{ActionDefinitions, Backends, MigrationService};
use crate::cluster::ServingClusterNode;
use crate::config::Config;
use crate::console::Console;
use crate::content::ContentStore;
use crate::control::ControlDatabase;
use crate::deployments::collection::ContentGarbageCollector;
use crate::deployments::files::ProjectFiles;
use crate::deployments::frontends::Frontends;
use crate::deployments::publication::PublicationPipeline;
use crate::deployments::publication::runtime::RuntimeScripts;
use crate::deployments::reports::AbuseReportService;
use crate::deployments::rerender::Rerenderer;
use crate::deployments::revisions::Revisions;
use crate::deployments::serving::{ExpiredShareRemover, PageService};
use crate::deployments::shares::Shares;
use crate::edge::EdgePurger;
use crate::envelope::ProjectLifecycle;
use crate::gauges::ServerGauges;
use crate::http::hosts::ServerHostNames;
use crate::http::rate_limit::RateLimits;
use crate::http::request_bodies::RequestBodyBudget;
use crate::http::request_ids::RequestIdGenerator;
use crate::infra::Infra;
use crate::landing::LazyLandingDocuments;
use crate::mcp::ToolServices;
use crate::mcp::app::AppToolServices;
use crate::payments::Payments;
use crate::payments::routes::CheckoutServices;
use crate::projects::Projects;
use crate::projects::domains::Domains;
use crate::realtime::Realtime;
use crate::realtime::live::routes::LiveQueryServices;
use crate::realtime::routes::RoomServices;
use crate::releases::ProjectReleases;
use crate::stats::routes::StatsServices;
use crate::stripe::WebhookReceiver;
use crate::stripe::dev::DevPaymentProvider;
use crate::telemetry::ServerMetrics;
use crate::visitor_files::{VisitorFileRouteServices, VisitorFiles};
use crate::visitors::Visitors;
use crate::visitors::dev::DevIssuer;
use crate::visitors::dev::routes::MaybeDevIssuer;
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_sandbox::Sandbox;

/// The shared application: each handler extracts the services that it uses.
#[derive(Clone, Debug)]
pub struct SharedApp(Arc<App>);

impl std::ops::Deref for SharedApp {
    type Target = App;
    fn deref(&self) -> &App {
        &self.0
    }
}

macro_rules! shared {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        /// The application.
        #[derive(Debug)]
        pub struct App {
            $($(#[$doc])* pub $name: $type,)+
        }

        $(impl FromRef<SharedApp> for $type {
            fn from_ref(app: &SharedApp) -> Self {
                app.$name.clone()
            }
        })+
    };
}

shared! {
    /// The effective settings.
    config: Arc<Config>,
    /// The time.
    clock: Clock,
    /// The control database.
    control: ControlDatabase,
    /// Values that every service is built on.
    infra: Infra,
    /// Counts and logs of projects.
    activity: Arc<Activity>,
    /// The guests.
    sandbox: Sandbox,
    /// Sources and pages by their digests.
    content: ContentStore,
    /// Pages at their slugs.
    serving: Arc<PageService>,
    /// Deletes expired quick shares.
    expiry: ExpiredShareRemover,
    /// Scripts that pages name.
    runtimes: Arc<RuntimeScripts>,
    /// Pipeline from a source to what a slug answers.
    pipeline: Arc<PublicationPipeline>,
    /// Files that projects have sent.
    files: Arc<ProjectFiles>,
    /// Pages of projects.
    frontends: Arc<Frontends>,
    /// History of frontends.
    revisions: Arc<Revisions>,
    /// Pages that anybody publishes, for a time.
    shares: Arc<Shares>,
    /// Renders pages again that another guest has rendered.
    rerenderer: Arc<Rerenderer>,
    /// Deletes content that nothing refers to.
    collector: Arc<ContentGarbageCollector>,
    /// Reports of abuse.
    reports: Arc<AbuseReportService>,
    /// Projects' databases and their actions.
    backends: Arc<Backends>,
    /// Migrations of backends.
    migrations: Arc<MigrationService>,
    /// Definitions of actions.
    definitions: Arc<ActionDefinitions>,
    /// Releases of projects.
    releases: Arc<ProjectReleases>,
    /// Calls of actions, and queries of owners.
    action_calls: Arc<ActionCalls>,
    /// Files that visitors bring.
    visitor_files: Arc<VisitorFiles>,
    /// State of the routes of visitors' files.
    visitor_file_routes: VisitorFileRouteServices,
    /// Histories of backends, and their restores.
    histories: Arc<BackendHistoryService>,
    /// Exports of backends' databases.
    exporter: Arc<BackendExporter>,
    /// Rooms in which pages talk to each other.
    realtime: Arc<Realtime>,
    /// State of the routes of rooms.
    rooms: RoomServices,
    /// Prices that projects sell, and payments of visitors.
    payments: Arc<Payments>,
    /// State of the routes of checkouts.
    checkout: CheckoutServices,
    /// Receiver of the payment provider's webhooks, if one is configured.
    webhooks: Option<Arc<WebhookReceiver>>,
    /// The development stand-in for the payment provider.
    dev_provider: Option<Arc<DevPaymentProvider>>,
    /// State of the routes of live queries.
    live_queries: LiveQueryServices,
    /// Projects, which contain frontends and a backend.
    projects: Projects,
    /// Domains of projects.
    domains: Domains,
    /// Signed-in visitors.
    visitors: Arc<Visitors>,
    /// The development issuer, if there is one.
    dev_issuer: MaybeDevIssuer,
    /// Deletion of projects with their contents.
    teardown: ProjectLifecycle,
    /// State of the routes of calls.
    calls: CallServices,
    /// State of the tools.
    tools: ToolServices,
    /// State of the routes of what owners see.
    stats: StatsServices,
    /// State of the tools of apps.
    app_tools: AppToolServices,
    /// Sender of purges to the edge, if there is one.
    purger: Option<Arc<EdgePurger>>,
    /// Accounts and their keys.
    workspaces: Workspaces,
    /// Workspaces with their members, keys and plans.
    accounts: Accounts,
    /// Authentication of callers.
    authenticator: Authenticator,
    /// The landing page and its files.
    landing: Arc<LazyLandingDocuments>,
    /// The owner's console.
    console: Arc<Console>,
    /// Host names of the server.
    hosts: Arc<ServerHostNames>,
    /// Rate limits of all clients.
    rate_limits: Arc<RateLimits>,
    /// Bodies of requests that arrive slowly.
    request_bodies: RequestBodyBudget,
    /// Stored answers of requests with an `Idempotency-Key`.
    idempotency: IdempotencyService,
    /// Generator of request ids.
    request_ids: Arc<RequestIdGenerator>,
    /// Metrics for operators.
    metrics: Arc<ServerMetrics>,
    /// Metrics that are measured when they are read.
    gauges: Arc<ServerGauges>,
    /// This node, if the server is one of several.
    cluster: Option<Arc<ServingClusterNode>>,
}

/// Starts a sandbox that serves nobody, so that the guests are compiled when the application opens.
///
/// # Errors
/// When the sandbox cannot start.
pub fn compile_guests(config: &Config, clock: &Clock) -> anyhow::Result<Sandbox> {
    services::start_sandbox(config, clock)
}

impl App {
    /// Opens everything below the data directory. Guests go on loading in the background. A node of several opens what `cluster` has
    /// loaded, as the owner of control or as one that follows.
    ///
    /// # Errors
    /// When something below the data or cache directory cannot be opened.
    pub async fn open(
        config: Config,
        clock: Clock,
        random: Random,
        cluster: Option<Arc<ServingClusterNode>>,
    ) -> anyhow::Result<SharedApp> {
        let foundation = ServiceDependencies::open(config, clock, random, cluster).await?;
        let app = Self::assemble(DomainServices::open(foundation).await?)?;
        if let Some(node) = &app.cluster {
            node::join(node, &app);
        }
        match app.control.is_follower() {
            true => app.begin_following().await,
            false => app.begin_owning().await?,
        }
        Ok(SharedApp(Arc::new(app)))
    }

    fn assemble(services: DomainServices) -> anyhow::Result<Self> {
        let infra = services.foundation.infra.clone();
        let calls = services.calls();
        Ok(Self {
            app_tools: services.app_tools(&calls),
            visitor_file_routes: services.visitor_file_routes(&calls),
            calls,
            tools: services.tools(),
            stats: services.stats(),
            rooms: services.rooms(),
            checkout: services.checkout(),
            live_queries: services.live_queries(),
            dev_issuer: DevIssuer::new(&infra)?.map(Arc::new),
            landing: Arc::new(LazyLandingDocuments::new(Arc::clone(&infra.config))),
            console: Arc::new(Console::new(
                Arc::clone(&infra.config),
                services.authenticator.clone(),
            )),
            request_ids: request_id_generator(&infra.random)?,
            request_bodies: RequestBodyBudget::new(&infra.config.limits),
            idempotency: services.idempotency(),
            sandbox: services.sandbox,
            content: services.deployments.content,
            serving: services.deployments.serving,
            expiry: services.deployments.expiry,
            runtimes: services.deployments.runtimes,
            pipeline: services.deployments.pipeline,
            files: services.deployments.files,
            frontends: services.deployments.frontends,
            revisions: services.deployments.revisions,
            shares: services.deployments.shares,
            rerenderer: services.deployments.rerenderer,
            collector: services.deployments.collector,
            reports: services.deployments.reports,
            realtime: services.realtime,
            backends: services.backends,
            migrations: services.migrations,
            definitions: services.definitions,
            releases: services.releases,
            action_calls: services.action_calls,
            visitor_files: services.visitor_files,
            histories: services.histories,
            exporter: services.exporter,
            workspaces: services.workspaces,
            projects: services.projects,
            hosts: Arc::clone(services.domains.hosts()),
            domains: services.domains,
            authenticator: services.authenticator,
            visitors: services.visitors,
            purger: services.purger,
            payments: services.payments,
            webhooks: services.webhooks,
            dev_provider: services.dev_provider,
            teardown: services.teardown,
            accounts: services.accounts,
            rate_limits: services.rate_limits,
            metrics: services.metrics,
            gauges: services.gauges,
            config: Arc::clone(&infra.config),
            clock: infra.clock.clone(),
            control: infra.control.clone(),
            cluster: services.foundation.cluster.clone(),
            activity: Arc::clone(&services.foundation.activity),
            infra,
        })
    }
}

/// Makes the generator of request ids, which begins anew with each start.
fn request_id_generator(random: &Random) -> anyhow::Result<Arc<RequestIdGenerator>> {
    let seed = u32::from_le_bytes(random.bytes()?);
    Ok(Arc::new(RequestIdGenerator::new(seed)))
}
