//! The services of the application, made in the order of their dependencies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::deployments::DeploymentServices;
use crate::access::idempotency::IdempotencyService;
use crate::access::{Authenticator, TokenVerifier};
use crate::accounts::{Accounts, PlanBilling, SubscriptionEventConsumer};
use crate::activity::Activity;
use crate::backends::calls::ActionCalls;
use crate::backends::calls::routes::CallServices;
use crate::backends::export::BackendExporter;
use crate::backends::history::BackendHistoryService;
use crate::backends::releases::DefinitionReleases;
use crate::backends::{ActionDefinitions, Backends, MigrationService};
use crate::cluster::ServingClusterNode;
use crate::config::Config;
use crate::control::{ControlDatabase, InstallationSecrets};
use crate::deployments::publication::CapacityChecker;
use crate::deployments::serving::PageService;
use crate::edge::EdgePurger;
use crate::envelope::ProjectLifecycle;
use crate::gauges::ServerGauges;
use crate::guests;
use crate::http::held_answers::HeldAnswerBudget;
use crate::http::hosts::ServerHostNames;
use crate::http::rate_limit::RateLimits;
use crate::infra::Infra;
use crate::mcp::ToolServices;
use crate::mcp::app::AppToolServices;
use crate::mcp::resources::ResourceTexts;
use crate::outbound::{NO_ROOT_CERTIFICATES, OutboundClient};
use crate::payments::Payments;
use crate::payments::routes::CheckoutServices;
use crate::projects::Projects;
use crate::projects::domains::Domains;
use crate::realtime::Realtime;
use crate::realtime::live::LiveQueries;
use crate::realtime::live::routes::LiveQueryServices;
use crate::realtime::routes::RoomServices;
use crate::releases::ProjectReleases;
use crate::stats::routes::StatsServices;
use crate::stripe::dev::{self, DevPaymentProvider};
use crate::stripe::{EventConsumer, StripeClient, WebhookReceiver};
use crate::telemetry::ServerMetrics;
use crate::visitor_files::{VisitorFileRouteServices, VisitorFiles};
use crate::visitors::Visitors;
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_sandbox::{Sandbox, SandboxConfig, StartupCodeTier};

/// Pause between two looks for keys that the owner generates at its first start.
const LOOK_FOR_SECRETS_EVERY: Duration = Duration::from_millis(100);

/// Longest time that a machine which follows waits for them.
const SECRETS_WAIT: Duration = Duration::from_secs(30);

/// Values that all services need.
pub(super) struct ServiceDependencies {
    pub(super) infra: Infra,
    pub(super) secrets: InstallationSecrets,
    pub(super) outbound: OutboundClient,
    /// Counts and logs of projects.
    pub(super) activity: Arc<Activity>,
    /// This node, if the server is one of several.
    pub(super) cluster: Option<Arc<ServingClusterNode>>,
}

/// Services of the domains.
pub(super) struct DomainServices {
    pub(super) sandbox: Sandbox,
    pub(super) deployments: DeploymentServices,
    pub(super) realtime: Arc<Realtime>,
    pub(super) backends: Arc<Backends>,
    pub(super) migrations: Arc<MigrationService>,
    pub(super) definitions: Arc<ActionDefinitions>,
    pub(super) releases: Arc<ProjectReleases>,
    pub(super) action_calls: Arc<ActionCalls>,
    pub(super) visitor_files: Arc<VisitorFiles>,
    pub(super) histories: Arc<BackendHistoryService>,
    pub(super) exporter: Arc<BackendExporter>,
    pub(super) workspaces: Workspaces,
    pub(super) projects: Projects,
    pub(super) domains: Domains,
    pub(super) authenticator: Authenticator,
    pub(super) visitors: Arc<Visitors>,
    pub(super) purger: Option<Arc<EdgePurger>>,
    pub(super) payments: Arc<Payments>,
    pub(super) webhooks: Option<Arc<WebhookReceiver>>,
    pub(super) dev_provider: Option<Arc<DevPaymentProvider>>,
    pub(super) teardown: ProjectLifecycle,
    pub(super) accounts: Accounts,
    pub(super) rate_limits: Arc<RateLimits>,
    pub(super) answers: HeldAnswerBudget,
    pub(super) metrics: Arc<ServerMetrics>,
    pub(super) gauges: Arc<ServerGauges>,
    pub(super) foundation: ServiceDependencies,
}

/// Services of payments.
struct PaymentServices {
    payments: Arc<Payments>,
    billing: PlanBilling,
    webhooks: Option<Arc<WebhookReceiver>>,
    dev_provider: Option<Arc<DevPaymentProvider>>,
}

impl ServiceDependencies {
    /// Opens the control database.
    pub(super) async fn open(
        config: Config,
        clock: Clock,
        random: Random,
        cluster: Option<Arc<ServingClusterNode>>,
    ) -> anyhow::Result<Self> {
        let outbound = OutboundClient::new()?;
        if !outbound.has_root_certificates() {
            tracing::warn!("sign-in, payments and certificates will fail: {NO_ROOT_CERTIFICATES}");
        }
        let control = open_control(&config, cluster.as_deref()).await?;
        let secrets = match control.is_follower() {
            true => wait_for_secrets(&control).await?,
            false => InstallationSecrets::load(&control, &random).await?,
        };
        if let Some(node) = &cluster {
            // The sandbox starts with them. What fails is tried again while the node serves.
            let mut guests = node.follow_guests(&control, &config.guests, &clock);
            guests.follow(Vec::new()).await;
        }
        let infra = Infra {
            control,
            clock,
            random,
            config: Arc::new(config),
        };
        let activity = Activity::new(infra.control.clone(), infra.clock.clone(), &infra.random)?;
        Ok(Self {
            secrets,
            activity: Arc::new(activity),
            infra,
            outbound,
            cluster,
        })
    }

    fn sandbox(&self) -> anyhow::Result<Sandbox> {
        start_sandbox(&self.infra.config, &self.infra.clock)
    }

    /// Makes the calls of actions, and the files that some of them take and give.
    fn calls(
        &self,
        (backends, definitions): (&Arc<Backends>, &Arc<ActionDefinitions>),
        deployments: &DeploymentServices,
        sandbox: &Sandbox,
    ) -> (Arc<ActionCalls>, Arc<VisitorFiles>) {
        let calls = Arc::new(ActionCalls::new(backends, Arc::clone(definitions)));
        let files = VisitorFiles::new(
            self.infra.clone(),
            (Arc::clone(backends), Arc::clone(&calls)),
            Arc::clone(&deployments.files),
            sandbox.clone(),
            self.secrets.idempotency.clone(),
        );
        (calls, Arc::new(files))
    }

    /// Makes the rooms. They come after the pages and the domains, because they look up those that a change affects.
    fn realtime(&self) -> Arc<Realtime> {
        Arc::new(Realtime::new(self.infra.clone()))
    }

    fn backends(
        &self,
        capacity: &CapacityChecker,
        sandbox: &Sandbox,
        realtime: &Arc<Realtime>,
    ) -> anyhow::Result<Arc<Backends>> {
        let backends = Backends::new(
            self.infra.clone(),
            capacity.clone(),
            sandbox.clone(),
            Arc::clone(realtime) as _,
            self.cluster
                .as_ref()
                .map(|node| node.tenants(self.infra.config.limits.history_bytes)),
        );
        Ok(Arc::new(backends?))
    }

    fn workspaces(&self) -> Workspaces {
        let Infra {
            control,
            clock,
            random,
            ..
        } = self.infra.clone();
        Workspaces::new(control, clock, random)
    }

    fn projects(&self, workspaces: &Workspaces) -> Projects {
        Projects::new(self.infra.clone(), workspaces.clone())
    }

    fn releases(
        &self,
        projects: &Projects,
        deployments: &DeploymentServices,
        (backends, migrations, definitions): (
            &Arc<Backends>,
            &Arc<MigrationService>,
            &Arc<ActionDefinitions>,
        ),
    ) -> ProjectReleases {
        let definitions = DefinitionReleases::new(
            Arc::clone(backends),
            Arc::clone(migrations),
            Arc::clone(definitions),
        );
        let revisions = Arc::clone(&deployments.revisions);
        ProjectReleases::new(self.infra.clone(), projects.clone(), revisions, definitions)
    }

    fn authenticator(&self, workspaces: &Workspaces) -> anyhow::Result<Authenticator> {
        let oauth = self.infra.config.oauth.as_ref();
        let tokens = oauth.map(|oauth| {
            TokenVerifier::new(oauth, self.outbound.clone(), self.infra.clock.clone())
        });
        let tokens = tokens.transpose().context("in oauth.issuer")?;
        Ok(Authenticator::new(workspaces.clone(), tokens))
    }

    fn visitors(
        &self,
        projects: &Projects,
        serving: &Arc<PageService>,
        hosts: &Arc<ServerHostNames>,
    ) -> anyhow::Result<Arc<Visitors>> {
        let visitors = Visitors::new(
            self.infra.clone(),
            &self.secrets.sign_in,
            projects.clone(),
            Arc::clone(serving),
            Arc::clone(hosts),
            &self.outbound,
        )?;
        Ok(Arc::new(visitors))
    }

    /// Opens the domains, whose rows are read.
    async fn domains(&self, workspaces: &Workspaces) -> anyhow::Result<Domains> {
        let (infra, secret) = (self.infra.clone(), self.secrets.domains.clone());
        let workspaces = workspaces.clone();
        let opening = tokio::task::spawn_blocking(|| Domains::open(infra, workspaces, secret));
        opening.await?.context("reading the domains")
    }

    fn purger(&self) -> Option<Arc<EdgePurger>> {
        let edge = self.infra.config.edge.as_ref()?;
        let purger = EdgePurger::new(self.infra.clone(), self.outbound.clone(), edge);
        Some(Arc::new(purger))
    }

    fn payment_services(&self, projects: &Projects) -> anyhow::Result<PaymentServices> {
        let Infra { random, config, .. } = &self.infra;
        let stand_in = dev::dev_stripe_settings(config, random)?;
        let stripe = config.stripe.as_ref().or(stand_in.as_ref());
        let provider = stripe
            .map(|settings| StripeClient::new(self.outbound.clone(), settings))
            .transpose()?;
        let price = stripe.and_then(|settings| settings.plan_price.clone());
        let billing = PlanBilling::new(provider.clone(), price, self.infra.clone());
        let payments = Arc::new(Payments::new(
            self.infra.clone(),
            projects.clone(),
            provider,
        ));
        // The consumers of the payment provider's events.
        let consumers: Vec<Arc<dyn EventConsumer>> = vec![
            Arc::clone(&payments) as _,
            Arc::new(SubscriptionEventConsumer),
        ];
        let webhooks = stripe
            .map(|settings| {
                let activity = Arc::clone(&self.activity);
                WebhookReceiver::new(self.infra.clone(), settings, consumers, activity)
            })
            .map(Arc::new);
        let dev_provider = stand_in
            .map(|settings| {
                DevPaymentProvider::new(self.infra.clone(), settings, self.outbound.clone())
            })
            .map(Arc::new);
        Ok(PaymentServices {
            payments,
            billing,
            webhooks,
            dev_provider,
        })
    }
}

/// Opens the control database: that of a machine alone, or that of a node, which may follow another.
async fn open_control(
    config: &Config,
    cluster: Option<&ServingClusterNode>,
) -> anyhow::Result<ControlDatabase> {
    let opened = match cluster {
        None => ControlDatabase::open(&config.data).map_err(anyhow::Error::from),
        Some(node) => node.open_control().await,
    };
    opened.context("opening the control database")
}

/// Waits until the owner has generated the keys, and this machine, which follows, has them.
async fn wait_for_secrets(control: &ControlDatabase) -> anyhow::Result<InstallationSecrets> {
    let finding = async {
        loop {
            if let Some(secrets) = InstallationSecrets::find(control).await? {
                return anyhow::Ok(secrets);
            }
            tokio::time::sleep(LOOK_FOR_SECRETS_EVERY).await;
        }
    };
    let found = tokio::time::timeout(SECRETS_WAIT, finding).await;
    // The next start may take control itself.
    found.context("control's owner has not generated the keys of the installation")?
}

/// Starts the sandbox. Guests go on loading in the background; what is compiled stays in the cache.
pub(super) fn start_sandbox(config: &Config, clock: &Clock) -> anyhow::Result<Sandbox> {
    let sandbox = Sandbox::start(SandboxConfig {
        guests: guests::read_choices(&config.guests, clock.now()),
        limits: guests::guest_limits(&config.limits),
        startup_code: StartupCodeTier::Baseline,
        compiler: config.compiler.clone(),
        ..SandboxConfig::new(config.cache.clone())
    });
    sandbox.context("starting the sandbox")
}

/// Makes the metrics of these services, and the gauges that are read when they are asked for.
fn metrics_and_gauges(
    foundation: &ServiceDependencies,
    deployments: &DeploymentServices,
    sandbox: &Sandbox,
    realtime: &Realtime,
) -> (ServerMetrics, ServerGauges) {
    let mut gauges = ServerGauges::default();
    let metrics = ServerMetrics::new(|registry| {
        gauges = ServerGauges::register(registry);
        deployments.register(registry);
        sandbox.metrics().register(registry);
        realtime.register(registry);
        if let Some(node) = &foundation.cluster {
            node.run().metrics().register(registry);
        }
    });
    (metrics, gauges)
}

impl DomainServices {
    /// Opens everything below the data directory. Guests go on loading in the background. Changes nothing that an owner's duties do.
    pub(super) async fn open(foundation: ServiceDependencies) -> anyhow::Result<Self> {
        let sandbox = foundation.sandbox()?;
        let deployments = DeploymentServices::open(&foundation, &sandbox).await?;
        let workspaces = foundation.workspaces();
        let domains = foundation.domains(&workspaces).await?;
        // The cache of pages and the domains handle a change first, because the rooms read them.
        let realtime = foundation.realtime();
        let backends = foundation.backends(&deployments.capacity, &sandbox, &realtime)?;
        let definitions = Arc::new(ActionDefinitions::new(&backends));
        let infra = &foundation.infra;
        let projects = foundation.projects(&workspaces);
        let authenticator = foundation.authenticator(&workspaces)?;
        let visitors = foundation.visitors(&projects, &deployments.serving, domains.hosts())?;
        let paying = foundation.payment_services(&projects)?;
        let teardown = ProjectLifecycle::new(
            (infra, Arc::clone(&foundation.activity)),
            workspaces.clone(),
            projects.clone(),
            deployments.of_projects(),
            Arc::clone(&backends),
            Arc::clone(&visitors),
            Arc::clone(&paying.payments),
        );
        let config = Arc::clone(&infra.config);
        let accounts = Accounts::new(workspaces.clone(), teardown.clone(), paying.billing, config);
        let migrations = Arc::new(MigrationService::new(&backends));
        let definers = (&backends, &migrations, &definitions);
        let releases = foundation.releases(&projects, &deployments, definers);
        let (metrics, gauges) = metrics_and_gauges(&foundation, &deployments, &sandbox, &realtime);
        let (calls, files) = foundation.calls((&backends, &definitions), &deployments, &sandbox);
        Ok(Self {
            action_calls: calls,
            visitor_files: files,
            definitions,
            migrations,
            releases: Arc::new(releases),
            histories: Arc::new(BackendHistoryService::new(&backends)),
            exporter: Arc::new(BackendExporter::new(&backends)),
            purger: foundation.purger(),
            payments: paying.payments,
            webhooks: paying.webhooks,
            dev_provider: paying.dev_provider,
            rate_limits: Arc::new(RateLimits::new(&infra.config.limits, &infra.clock)),
            answers: HeldAnswerBudget::new(&infra.config.limits),
            metrics: Arc::new(metrics),
            gauges: Arc::new(gauges),
            sandbox,
            deployments,
            realtime,
            backends,
            workspaces,
            projects,
            domains,
            authenticator,
            visitors,
            teardown,
            accounts,
            foundation,
        })
    }

    /// Returns the state of the routes of calls.
    pub(super) fn calls(&self) -> CallServices {
        CallServices {
            backends: Arc::clone(&self.backends),
            definitions: Arc::clone(&self.definitions),
            actions: Arc::clone(&self.action_calls),
            serving: Arc::clone(&self.deployments.serving),
            projects: self.projects.clone(),
            visitors: Arc::clone(&self.visitors),
            authenticator: self.authenticator.clone(),
            rate_limits: Arc::clone(&self.rate_limits),
            answers: self.answers.clone(),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the service of repeated requests.
    pub(super) fn idempotency(&self) -> IdempotencyService {
        let key = self.foundation.secrets.idempotency.clone();
        IdempotencyService::new(self.foundation.infra.clone(), key)
    }

    /// Returns the state of the routes of visitors' files.
    pub(super) fn visitor_file_routes(&self, calls: &CallServices) -> VisitorFileRouteServices {
        VisitorFileRouteServices {
            files: Arc::clone(&self.visitor_files),
            calls: calls.clone(),
        }
    }

    /// Returns the state of the tools of pages.
    pub(super) fn app_tools(&self, calls: &CallServices) -> AppToolServices {
        let metrics = Arc::clone(&self.metrics);
        AppToolServices::new(calls.clone(), metrics, self.foundation.infra.clock.clone())
    }

    /// Returns the state of the tools.
    pub(super) fn tools(&self) -> ToolServices {
        ToolServices {
            authenticator: self.authenticator.clone(),
            accounts: self.accounts.clone(),
            projects: self.projects.clone(),
            domains: self.domains.clone(),
            envelope: self.teardown.clone(),
            shares: Arc::clone(&self.deployments.shares),
            frontends: Arc::clone(&self.deployments.frontends),
            revisions: Arc::clone(&self.deployments.revisions),
            visitors: Arc::clone(&self.visitors),
            visitor_files: Arc::clone(&self.visitor_files),
            backends: Arc::clone(&self.backends),
            definitions: Arc::clone(&self.definitions),
            releases: Arc::clone(&self.releases),
            actions: Arc::clone(&self.action_calls),
            migrations: Arc::clone(&self.migrations),
            histories: Arc::clone(&self.histories),
            realtime: Arc::clone(&self.realtime),
            payments: Arc::clone(&self.payments),
            activity: Arc::clone(&self.foundation.activity),
            resources: ResourceTexts::default(),
            answers: self.answers.clone(),
            metrics: Arc::clone(&self.metrics),
            clock: self.foundation.infra.clock.clone(),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of what owners see.
    pub(super) fn stats(&self) -> StatsServices {
        let infra = &self.foundation.infra;
        StatsServices {
            activity: Arc::clone(&self.foundation.activity),
            authenticator: self.authenticator.clone(),
            projects: self.projects.clone(),
            clock: infra.clock.clone(),
            config: Arc::clone(&infra.config),
        }
    }

    /// Returns the state of the routes of rooms.
    pub(super) fn rooms(&self) -> RoomServices {
        RoomServices {
            realtime: Arc::clone(&self.realtime),
            backends: Arc::clone(&self.backends),
            serving: Arc::clone(&self.deployments.serving),
            visitors: Arc::clone(&self.visitors),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of checkouts.
    pub(super) fn checkout(&self) -> CheckoutServices {
        CheckoutServices {
            payments: Arc::clone(&self.payments),
            serving: Arc::clone(&self.deployments.serving),
            visitors: Arc::clone(&self.visitors),
            answers: self.answers.clone(),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of live queries.
    pub(super) fn live_queries(&self) -> LiveQueryServices {
        LiveQueryServices {
            live: LiveQueries::new(
                Arc::clone(&self.realtime),
                Arc::clone(&self.action_calls),
                Arc::clone(&self.visitors),
                Arc::clone(&self.rate_limits),
                Arc::clone(&self.foundation.infra.config),
            ),
            serving: Arc::clone(&self.deployments.serving),
        }
    }
}
