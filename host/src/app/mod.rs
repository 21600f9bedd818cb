//! The application: all services, and the state that handlers share.

mod deployments;
mod services;

use std::sync::Arc;

use axum::extract::FromRef;

use self::services::{Infrastructure, Services};
use crate::access::Authenticator;
use crate::access::idempotency::Idempotency;
use crate::accounts::Accounts;
use crate::backends::calls::ActionCalls;
use crate::backends::calls::routes::CallState;
use crate::backends::export::Exporter;
use crate::backends::history::Histories;
use crate::backends::{Backends, Definitions, Migrations};
use crate::config::Config;
use crate::content::Content;
use crate::control::Control;
use crate::deployments::collection::Collector;
use crate::deployments::frontends::Frontends;
use crate::deployments::publication::Pipeline;
use crate::deployments::publication::runtime::Runtimes;
use crate::deployments::reports::Reports;
use crate::deployments::rerender::Rerenderer;
use crate::deployments::revisions::Revisions;
use crate::deployments::serving::{Expiry, Serving};
use crate::deployments::shares::Shares;
use crate::edge::Purger;
use crate::envelope::Teardown;
use crate::gauges::Gauges;
use crate::http::hosts::Hosts;
use crate::http::rate_limit::RateLimits;
use crate::http::request_ids::RequestIds;
use crate::infra::Infra;
use crate::landing::Landing;
use crate::mcp::ToolState;
use crate::mcp::app::AppToolState;
use crate::payments::Payments;
use crate::payments::routes::CheckoutState;
use crate::projects::Projects;
use crate::realtime::Realtime;
use crate::realtime::live::routes::LiveQueryState;
use crate::realtime::routes::RoomState;
use crate::stripe::WebhookReceiver;
use crate::stripe::dev::DevProvider;
use crate::telemetry::Metrics;
use crate::visitors::Visitors;
use crate::visitors::dev::DevIssuer;
use crate::visitors::dev::routes::MaybeIssuer;
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
    control: Control,
    /// Values that every service is built on.
    infra: Infra,
    /// The guests.
    sandbox: Sandbox,
    /// Sources and pages by their digests.
    content: Content,
    /// Pages at their slugs.
    serving: Arc<Serving>,
    /// Deletes expired quick shares.
    expiry: Expiry,
    /// Scripts that pages name.
    runtimes: Arc<Runtimes>,
    /// Pipeline from a source to what a slug answers.
    pipeline: Arc<Pipeline>,
    /// Pages of projects.
    frontends: Arc<Frontends>,
    /// History of frontends.
    revisions: Arc<Revisions>,
    /// Pages that anybody publishes, for a time.
    shares: Arc<Shares>,
    /// Renders pages again that another guest has rendered.
    rerenderer: Arc<Rerenderer>,
    /// Deletes content that nothing refers to.
    collector: Arc<Collector>,
    /// Reports of abuse.
    reports: Arc<Reports>,
    /// Projects' databases and their actions.
    backends: Arc<Backends>,
    /// Migrations of backends.
    migrations: Arc<Migrations>,
    /// Definitions of actions.
    definitions: Arc<Definitions>,
    /// Calls of actions, and queries of owners.
    action_calls: Arc<ActionCalls>,
    /// Histories of backends, and their restores.
    histories: Arc<Histories>,
    /// Exports of backends' databases.
    exporter: Arc<Exporter>,
    /// Rooms in which pages talk to each other.
    realtime: Arc<Realtime>,
    /// State of the routes of rooms.
    rooms: RoomState,
    /// Prices that projects sell, and payments of visitors.
    payments: Arc<Payments>,
    /// State of the routes of checkouts.
    checkout: CheckoutState,
    /// Receiver of the payment provider's webhooks, if one is configured.
    webhooks: Option<Arc<WebhookReceiver>>,
    /// The development stand-in for the payment provider.
    dev_provider: Option<Arc<DevProvider>>,
    /// State of the routes of live queries.
    live_queries: LiveQueryState,
    /// Projects, which contain frontends and a backend.
    projects: Projects,
    /// Signed-in visitors.
    visitors: Arc<Visitors>,
    /// The development issuer, if there is one.
    dev_issuer: MaybeIssuer,
    /// Deletion of projects with their contents.
    teardown: Teardown,
    /// State of the routes of calls.
    calls: CallState,
    /// State of the tools.
    tools: ToolState,
    /// State of the tools of apps.
    app_tools: AppToolState,
    /// Sender of purges to the edge, if there is one.
    purger: Option<Arc<Purger>>,
    /// Accounts and their keys.
    workspaces: Workspaces,
    /// Workspaces with their members, keys and plans.
    accounts: Accounts,
    /// Authentication of callers.
    authenticator: Authenticator,
    /// The landing page and its files.
    landing: Arc<Landing>,
    /// Host names of the server.
    hosts: Arc<Hosts>,
    /// Rate limits of all clients.
    rate_limits: Arc<RateLimits>,
    /// Stored answers of requests with an `Idempotency-Key`.
    idempotency: Idempotency,
    /// Generator of request ids.
    request_ids: Arc<RequestIds>,
    /// Metrics for operators.
    metrics: Arc<Metrics>,
    /// Metrics that are measured when they are read.
    gauges: Arc<Gauges>,
}

impl App {
    /// Opens everything below the data directory. Guests go on loading in the background.
    ///
    /// # Errors
    /// When something below the data or cache directory cannot be opened.
    pub async fn open(config: Config, clock: Clock, random: Random) -> anyhow::Result<SharedApp> {
        let foundation = Infrastructure::open(config, clock, random).await?;
        let app = Self::assemble(Services::open(foundation).await?)?;
        Ok(SharedApp(Arc::new(app)))
    }

    fn assemble(services: Services) -> anyhow::Result<Self> {
        let foundation = &services.foundation;
        let infra = foundation.infra.clone();
        let calls = services.calls();
        let metrics = Arc::clone(&services.metrics);
        Ok(Self {
            app_tools: AppToolState::new(calls.clone(), metrics, infra.clock.clone()),
            calls,
            tools: services.tools(),
            rooms: services.rooms(),
            checkout: services.checkout(),
            live_queries: services.live_queries(),
            dev_issuer: DevIssuer::new(&infra)?.map(Arc::new),
            landing: Arc::new(Landing::new(Arc::clone(&infra.config))),
            hosts: Arc::new(Hosts::new(&infra.config)),
            request_ids: Arc::new(RequestIds::new(u32::from_le_bytes(infra.random.bytes()?))),
            idempotency: Idempotency::new(infra.clone(), foundation.secrets.idempotency.clone()),
            sandbox: services.sandbox,
            content: services.deployments.content,
            serving: services.deployments.serving,
            expiry: services.deployments.expiry,
            runtimes: services.deployments.runtimes,
            pipeline: services.deployments.pipeline,
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
            action_calls: services.action_calls,
            histories: services.histories,
            exporter: services.exporter,
            workspaces: services.workspaces,
            projects: services.projects,
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
            infra,
        })
    }
}
