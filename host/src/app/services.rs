//! The services of the application, made in the order of their dependencies.

use std::sync::Arc;

use anyhow::Context as _;

use super::deployments::Deployments;
use crate::access::{Authenticator, TokenVerifier};
use crate::accounts::{Accounts, Billing, SubscriptionConsumer};
use crate::backends::calls::ActionCalls;
use crate::backends::calls::routes::CallState;
use crate::backends::export::Exporter;
use crate::backends::history::Histories;
use crate::backends::{Backends, Definitions, Migrations};
use crate::config::Config;
use crate::control::{Control, Secrets};
use crate::deployments::publication::Capacity;
use crate::deployments::serving::Serving;
use crate::edge::Purger;
use crate::envelope::Teardown;
use crate::gauges::Gauges;
use crate::guests;
use crate::http::rate_limit::RateLimits;
use crate::infra::Infra;
use crate::mcp::ToolState;
use crate::outbound::{NO_ROOT_CERTIFICATES, Outbound};
use crate::payments::Payments;
use crate::payments::routes::CheckoutState;
use crate::projects::Projects;
use crate::realtime::Realtime;
use crate::realtime::live::Live;
use crate::realtime::live::routes::LiveQueryState;
use crate::realtime::routes::RoomState;
use crate::stripe::dev::{self, DevProvider};
use crate::stripe::{EventConsumer, Stripe, WebhookReceiver};
use crate::telemetry::Metrics;
use crate::visitors::Visitors;
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_sandbox::{Sandbox, SandboxConfig, StartupCode};

/// Values that all services need.
pub(super) struct Infrastructure {
    pub(super) infra: Infra,
    pub(super) secrets: Secrets,
    pub(super) outbound: Outbound,
}

/// Services of the domains.
pub(super) struct Services {
    pub(super) sandbox: Sandbox,
    pub(super) deployments: Deployments,
    pub(super) realtime: Arc<Realtime>,
    pub(super) backends: Arc<Backends>,
    pub(super) migrations: Arc<Migrations>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) action_calls: Arc<ActionCalls>,
    pub(super) histories: Arc<Histories>,
    pub(super) exporter: Arc<Exporter>,
    pub(super) workspaces: Workspaces,
    pub(super) projects: Projects,
    pub(super) authenticator: Authenticator,
    pub(super) visitors: Arc<Visitors>,
    pub(super) purger: Option<Arc<Purger>>,
    pub(super) payments: Arc<Payments>,
    pub(super) webhooks: Option<Arc<WebhookReceiver>>,
    pub(super) dev_provider: Option<Arc<DevProvider>>,
    pub(super) teardown: Teardown,
    pub(super) accounts: Accounts,
    pub(super) rate_limits: Arc<RateLimits>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) foundation: Infrastructure,
}

/// Services of payments.
struct PaymentServices {
    payments: Arc<Payments>,
    billing: Billing,
    webhooks: Option<Arc<WebhookReceiver>>,
    dev_provider: Option<Arc<DevProvider>>,
}

impl Infrastructure {
    /// Opens the control database.
    pub(super) async fn open(config: Config, clock: Clock, random: Random) -> anyhow::Result<Self> {
        let outbound = Outbound::new()?;
        if !outbound.has_root_certificates() {
            tracing::warn!("sign-in, payments and certificates will fail: {NO_ROOT_CERTIFICATES}");
        }
        let control = Control::open(&config.data).context("opening the control database")?;
        Ok(Self {
            secrets: Secrets::load(&control, &random).await?,
            infra: Infra {
                control,
                clock,
                random,
                config: Arc::new(config),
            },
            outbound,
        })
    }

    fn sandbox(&self) -> anyhow::Result<Sandbox> {
        let config = &self.infra.config;
        let sandbox = Sandbox::start(SandboxConfig {
            guests: guests::read_choices(&config.guests, self.infra.clock.now()),
            limits: config.limits.guest_limits(),
            startup_code: StartupCode::Baseline,
            ..SandboxConfig::new(config.cache.clone())
        });
        sandbox.context("starting the sandbox")
    }

    /// Makes the rooms. They come after the pages, because they look up the pages that a change affects.
    fn realtime(&self) -> Arc<Realtime> {
        let realtime = Arc::new(Realtime::new(self.infra.clone()));
        self.infra.control.on_change(realtime.follower());
        realtime
    }

    async fn backends(
        &self,
        capacity: &Capacity,
        sandbox: &Sandbox,
        realtime: &Arc<Realtime>,
    ) -> anyhow::Result<Arc<Backends>> {
        let backends = Arc::new(Backends::new(
            self.infra.clone(),
            capacity.clone(),
            sandbox.clone(),
            Arc::clone(realtime) as _,
        )?);
        let settled = backends.load_owners().await;
        settled.context("removing databases that no backend owns")?;
        Ok(backends)
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
        serving: &Arc<Serving>,
    ) -> anyhow::Result<Arc<Visitors>> {
        let visitors = Visitors::new(
            self.infra.clone(),
            &self.secrets.sign_in,
            projects.clone(),
            Arc::clone(serving),
            &self.outbound,
        )?;
        let visitors = Arc::new(visitors);
        self.infra.control.on_change(visitors.follower());
        Ok(visitors)
    }

    fn purger(&self) -> Option<Arc<Purger>> {
        let edge = self.infra.config.edge.as_ref()?;
        let purger = Purger::new(self.infra.clone(), self.outbound.clone(), edge);
        Some(Arc::new(purger))
    }

    fn payment_services(&self, projects: &Projects) -> anyhow::Result<PaymentServices> {
        let Infra { random, config, .. } = &self.infra;
        let stand_in = dev::settings(config, random)?;
        let stripe = config.stripe.as_ref().or(stand_in.as_ref());
        let provider = stripe
            .map(|settings| Stripe::new(self.outbound.clone(), settings))
            .transpose()?;
        let price = stripe.and_then(|settings| settings.plan_price.clone());
        let billing = Billing::new(provider.clone(), price, self.infra.clone());
        let payments = Arc::new(Payments::new(
            self.infra.clone(),
            projects.clone(),
            provider,
        ));
        // The consumers of the payment provider's events.
        let consumers: Vec<Arc<dyn EventConsumer>> =
            vec![Arc::clone(&payments) as _, Arc::new(SubscriptionConsumer)];
        let webhooks = stripe
            .map(|settings| WebhookReceiver::new(self.infra.clone(), settings, consumers))
            .map(Arc::new);
        let dev_provider = stand_in
            .map(|settings| DevProvider::new(self.infra.clone(), settings, self.outbound.clone()))
            .map(Arc::new);
        Ok(PaymentServices {
            payments,
            billing,
            webhooks,
            dev_provider,
        })
    }
}

/// Makes the metrics of these services, and the gauges that are read when they are asked for.
fn metrics_and_gauges(
    deployments: &Deployments,
    sandbox: &Sandbox,
    realtime: &Realtime,
) -> (Metrics, Gauges) {
    let mut gauges = Gauges::default();
    let metrics = Metrics::new(|registry| {
        gauges = Gauges::register(registry);
        deployments.register(registry);
        sandbox.metrics().register(registry);
        realtime.register(registry);
    });
    (metrics, gauges)
}

impl Services {
    /// Opens everything below the data directory. Guests go on loading in the background.
    pub(super) async fn open(foundation: Infrastructure) -> anyhow::Result<Self> {
        let sandbox = foundation.sandbox()?;
        let deployments = Deployments::open(&foundation, &sandbox).await?;
        // The cache of pages handles a change first, because the rooms read it.
        let realtime = foundation.realtime();
        let backends = foundation
            .backends(&deployments.capacity, &sandbox, &realtime)
            .await?;
        let definitions = Arc::new(Definitions::new(&backends));
        let infra = &foundation.infra;
        let workspaces = foundation.workspaces();
        let projects = foundation.projects(&workspaces);
        let authenticator = foundation.authenticator(&workspaces)?;
        let visitors = foundation.visitors(&projects, &deployments.serving)?;
        let paying = foundation.payment_services(&projects)?;
        let settled = paying.payments.mark_interrupted_checkouts().await;
        settled.context("settling interrupted checkouts")?;
        let teardown = Teardown::new(
            (infra.control.clone(), infra.clock.clone()),
            workspaces.clone(),
            projects.clone(),
            Arc::clone(&deployments.frontends),
            Arc::clone(&backends),
            Arc::clone(&visitors),
            Arc::clone(&paying.payments),
        );
        let accounts = Accounts::new(
            workspaces.clone(),
            teardown.clone(),
            paying.billing,
            Arc::clone(&infra.config),
        );
        let (metrics, gauges) = metrics_and_gauges(&deployments, &sandbox, &realtime);
        Ok(Self {
            action_calls: Arc::new(ActionCalls::new(&backends, Arc::clone(&definitions))),
            definitions,
            migrations: Arc::new(Migrations::new(&backends)),
            histories: Arc::new(Histories::new(&backends)),
            exporter: Arc::new(Exporter::new(&backends)),
            purger: foundation.purger(),
            payments: paying.payments,
            webhooks: paying.webhooks,
            dev_provider: paying.dev_provider,
            rate_limits: Arc::new(RateLimits::new(&infra.config.limits, &infra.clock)),
            metrics: Arc::new(metrics),
            gauges: Arc::new(gauges),
            sandbox,
            deployments,
            realtime,
            backends,
            workspaces,
            projects,
            authenticator,
            visitors,
            teardown,
            accounts,
            foundation,
        })
    }

    /// Returns the state of the routes of calls.
    pub(super) fn calls(&self) -> CallState {
        CallState {
            backends: Arc::clone(&self.backends),
            definitions: Arc::clone(&self.definitions),
            actions: Arc::clone(&self.action_calls),
            serving: Arc::clone(&self.deployments.serving),
            projects: self.projects.clone(),
            visitors: Arc::clone(&self.visitors),
            authenticator: self.authenticator.clone(),
            rate_limits: Arc::clone(&self.rate_limits),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the tools.
    pub(super) fn tools(&self) -> ToolState {
        ToolState {
            authenticator: self.authenticator.clone(),
            accounts: self.accounts.clone(),
            projects: self.projects.clone(),
            envelope: self.teardown.clone(),
            shares: Arc::clone(&self.deployments.shares),
            frontends: Arc::clone(&self.deployments.frontends),
            revisions: Arc::clone(&self.deployments.revisions),
            visitors: Arc::clone(&self.visitors),
            backends: Arc::clone(&self.backends),
            definitions: Arc::clone(&self.definitions),
            actions: Arc::clone(&self.action_calls),
            migrations: Arc::clone(&self.migrations),
            histories: Arc::clone(&self.histories),
            realtime: Arc::clone(&self.realtime),
            payments: Arc::clone(&self.payments),
            metrics: Arc::clone(&self.metrics),
            clock: self.foundation.infra.clock.clone(),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of rooms.
    pub(super) fn rooms(&self) -> RoomState {
        RoomState {
            realtime: Arc::clone(&self.realtime),
            backends: Arc::clone(&self.backends),
            serving: Arc::clone(&self.deployments.serving),
            visitors: Arc::clone(&self.visitors),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of checkouts.
    pub(super) fn checkout(&self) -> CheckoutState {
        CheckoutState {
            payments: Arc::clone(&self.payments),
            serving: Arc::clone(&self.deployments.serving),
            visitors: Arc::clone(&self.visitors),
            config: Arc::clone(&self.foundation.infra.config),
        }
    }

    /// Returns the state of the routes of live queries.
    pub(super) fn live_queries(&self) -> LiveQueryState {
        LiveQueryState {
            live: Live::new(
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
