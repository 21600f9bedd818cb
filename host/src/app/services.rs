//! The services of the application, made in the order of their dependencies.

use std::sync::Arc;

use anyhow::Context as _;

use crate::access::{Authenticator, TokenVerifier};
use crate::accounts::{Accounts, Billing, SubscriptionConsumer};
use crate::backends::Backends;
use crate::backends::calls::routes::CallState;
use crate::config::Config;
use crate::content::{ContentLocation, OneTimeFiles, StoreConnector};
use crate::control::{Change, Control, Secrets};
use crate::deployments::Deployments;
use crate::deployments::operators::follow_content;
use crate::deployments::pages::Pages;
use crate::deployments::runtime::Runtimes;
use crate::deployments::timings::Timings;
use crate::deployments::visits::Visits;
use crate::edge::Purger;
use crate::envelope::Teardown;
use crate::gauges::Gauges;
use crate::guests;
use crate::http::rate_limit::RateLimits;
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
    pub(super) config: Arc<Config>,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) control: Control,
    outbound: Outbound,
}

/// Services of the domains.
pub(super) struct Services {
    pub(super) sandbox: Sandbox,
    pub(super) deployments: Arc<Deployments>,
    pub(super) realtime: Arc<Realtime>,
    pub(super) backends: Arc<Backends>,
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
    pub(super) infra: Infrastructure,
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
    pub(super) fn open(config: Config, clock: Clock, random: Random) -> anyhow::Result<Self> {
        let outbound = Outbound::new()?;
        if !outbound.has_root_certificates() {
            tracing::warn!("sign-in, payments and certificates will fail: {NO_ROOT_CERTIFICATES}");
        }
        Ok(Self {
            control: Control::open(&config.data).context("opening the control database")?,
            outbound,
            config: Arc::new(config),
            clock,
            random,
        })
    }

    fn sandbox(&self) -> anyhow::Result<Sandbox> {
        let config = &self.config;
        let sandbox = Sandbox::start(SandboxConfig {
            guests: guests::read_choices(&config.guests, self.clock.now()),
            limits: config.limits.guest_limits(),
            startup_code: StartupCode::Baseline,
            ..SandboxConfig::new(config.cache.clone())
        });
        sandbox.context("starting the sandbox")
    }

    async fn deployments(&self, sandbox: &Sandbox) -> anyhow::Result<Arc<Deployments>> {
        let (data, limits) = (&self.config.data, &self.config.limits);
        let pages = Pages::new(limits.page_cache_bytes, limits.page_bytes);
        let pages = Arc::new(pages);
        let followed = Arc::clone(&pages);
        self.control.on_change(move |change| {
            if let Change::Slug(slug) = change {
                followed.forget(slug);
            }
        });
        let place = ContentLocation::new(data, self.config.content_url.as_ref());
        let before = ContentLocation::read_recorded(data)?;
        let access = self.config.s3.as_ref();
        let connector = StoreConnector::new(self.outbound.clone(), limits.page_bytes);
        let content = place
            .open(&before, access, &connector, &self.random)
            .await?;
        follow_content(&self.control, &content, &place, &before).await?;
        let deployments = Arc::new(Deployments {
            control: self.control.clone(),
            content,
            once: OneTimeFiles::open(&data.join("once"))?,
            sandbox: sandbox.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            config: Arc::clone(&self.config),
            secrets: Secrets::load(&self.control, &self.random).await?,
            runtimes: Runtimes::default(),
            reservations: Arc::default(),
            timings: Timings::default(),
            pages,
            visits: Visits::new(u64::from_le_bytes(self.random.bytes()?)),
        });
        let deleting = deployments.remember_deletions().await;
        deleting.context("looking for content that may be under deletion")?;
        let burnt = deployments.finish_burning().await;
        burnt.context("removing burnt shares")?;
        let ended = deployments.end_unfinished().await;
        ended.context("ending interrupted creations")?;
        Ok(deployments)
    }

    /// Makes the rooms. They follow changes behind the pages, which they look at.
    fn realtime(&self, deployments: &Arc<Deployments>) -> Arc<Realtime> {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        let (limits, deployments) = (self.config.limits.clone(), Arc::clone(deployments));
        let realtime = Arc::new(Realtime::new(clock, random, limits, deployments));
        self.control.on_change(realtime.follower());
        realtime
    }

    async fn backends(
        &self,
        deployments: &Arc<Deployments>,
        sandbox: &Sandbox,
        realtime: &Arc<Realtime>,
    ) -> anyhow::Result<Arc<Backends>> {
        let backends = Arc::new(Backends::new(
            self.control.clone(),
            self.clock.clone(),
            self.random.clone(),
            Arc::clone(&self.config),
            Arc::clone(deployments),
            sandbox.clone(),
            Arc::clone(realtime) as _,
        )?);
        let settled = backends.load_owners().await;
        settled.context("removing databases that no backend owns")?;
        Ok(backends)
    }

    fn projects(&self, workspaces: &Workspaces) -> Projects {
        Projects::new(
            self.control.clone(),
            self.clock.clone(),
            self.random.clone(),
            Arc::clone(&self.config),
            workspaces.clone(),
        )
    }

    fn authenticator(&self, workspaces: &Workspaces) -> anyhow::Result<Authenticator> {
        let oauth = self.config.oauth.as_ref();
        let tokens =
            oauth.map(|oauth| TokenVerifier::new(oauth, self.outbound.clone(), self.clock.clone()));
        let tokens = tokens.transpose().context("in oauth.issuer")?;
        Ok(Authenticator::new(workspaces.clone(), tokens))
    }

    fn visitors(
        &self,
        projects: &Projects,
        deployments: &Arc<Deployments>,
    ) -> anyhow::Result<Arc<Visitors>> {
        let deployments = Arc::clone(deployments);
        let visitors = Visitors::new(projects.clone(), deployments, &self.outbound)?;
        let visitors = Arc::new(visitors);
        self.control.on_change(visitors.follower());
        Ok(visitors)
    }

    fn purger(&self) -> Option<Arc<Purger>> {
        let edge = self.config.edge.as_ref()?;
        let (control, clock) = (self.control.clone(), self.clock.clone());
        let purger = Purger::new(control, clock, self.outbound.clone(), edge);
        Some(Arc::new(purger))
    }

    fn paying(&self, projects: &Projects) -> anyhow::Result<PaymentServices> {
        let (control, clock, random) = (&self.control, &self.clock, &self.random);
        let stand_in = dev::settings(&self.config, random)?;
        let stripe = self.config.stripe.as_ref().or(stand_in.as_ref());
        let provider = stripe
            .map(|settings| Stripe::new(self.outbound.clone(), settings))
            .transpose()?;
        let price = stripe.and_then(|settings| settings.plan_price.clone());
        let billing = Billing::new(provider.clone(), price, &self.config, random.clone());
        let payments = Arc::new(Payments::new(
            control.clone(),
            clock.clone(),
            random.clone(),
            projects.clone(),
            provider,
        ));
        // The consumers of the payment provider's events.
        let consumers: Vec<Arc<dyn EventConsumer>> =
            vec![Arc::clone(&payments) as _, Arc::new(SubscriptionConsumer)];
        let webhooks = stripe
            .map(|settings| {
                WebhookReceiver::new(control.clone(), clock.clone(), settings, consumers)
            })
            .map(Arc::new);
        let dev_provider = stand_in
            .map(|settings| {
                let (config, outbound) = (&self.config, self.outbound.clone());
                let (control, clock) = (control.clone(), clock.clone());
                DevProvider::new(config, settings, outbound, control, clock, random.clone())
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

impl Services {
    /// Opens everything below the data directory. Guests go on loading in the background.
    pub(super) async fn open(infra: Infrastructure) -> anyhow::Result<Self> {
        let sandbox = infra.sandbox()?;
        let deployments = infra.deployments(&sandbox).await?;
        let realtime = infra.realtime(&deployments);
        let backends = infra.backends(&deployments, &sandbox, &realtime).await?;
        let (control, clock, random) = (&infra.control, &infra.clock, &infra.random);
        let workspaces = Workspaces::new(control.clone(), clock.clone(), random.clone());
        let projects = infra.projects(&workspaces);
        let authenticator = infra.authenticator(&workspaces)?;
        let visitors = infra.visitors(&projects, &deployments)?;
        let paying = infra.paying(&projects)?;
        let settled = paying.payments.mark_interrupted_checkouts().await;
        settled.context("settling interrupted checkouts")?;
        let teardown = Teardown::new(
            (control.clone(), clock.clone()),
            workspaces.clone(),
            projects.clone(),
            Arc::clone(&deployments),
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
        let mut gauges = Gauges::default();
        let metrics = Metrics::new(|registry| {
            gauges = Gauges::register(registry);
            deployments.register(registry);
            sandbox.metrics().register(registry);
            realtime.register(registry);
        });
        Ok(Self {
            purger: infra.purger(),
            payments: paying.payments,
            webhooks: paying.webhooks,
            dev_provider: paying.dev_provider,
            rate_limits: Arc::new(RateLimits::new(&infra.config.limits, clock)),
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
            infra,
        })
    }

    /// Returns the state of the routes of calls.
    pub(super) fn calls(&self) -> CallState {
        CallState {
            backends: Arc::clone(&self.backends),
            deployments: Arc::clone(&self.deployments),
            projects: self.projects.clone(),
            visitors: Arc::clone(&self.visitors),
            authenticator: self.authenticator.clone(),
            rate_limits: Arc::clone(&self.rate_limits),
            config: Arc::clone(&self.infra.config),
        }
    }

    /// Returns the state of the tools.
    pub(super) fn tools(&self) -> ToolState {
        ToolState {
            authenticator: self.authenticator.clone(),
            accounts: self.accounts.clone(),
            projects: self.projects.clone(),
            envelope: self.teardown.clone(),
            deployments: Arc::clone(&self.deployments),
            visitors: Arc::clone(&self.visitors),
            backends: Arc::clone(&self.backends),
            realtime: Arc::clone(&self.realtime),
            payments: Arc::clone(&self.payments),
            metrics: Arc::clone(&self.metrics),
            clock: self.infra.clock.clone(),
            config: Arc::clone(&self.infra.config),
        }
    }

    /// Returns the state of the routes of rooms.
    pub(super) fn rooms(&self) -> RoomState {
        RoomState {
            realtime: Arc::clone(&self.realtime),
            backends: Arc::clone(&self.backends),
            deployments: Arc::clone(&self.deployments),
            visitors: Arc::clone(&self.visitors),
            config: Arc::clone(&self.infra.config),
        }
    }

    /// Returns the state of the routes of checkouts.
    pub(super) fn checkout(&self) -> CheckoutState {
        CheckoutState {
            payments: Arc::clone(&self.payments),
            deployments: Arc::clone(&self.deployments),
            visitors: Arc::clone(&self.visitors),
            config: Arc::clone(&self.infra.config),
        }
    }

    /// Returns the state of the routes of live queries.
    pub(super) fn live_queries(&self) -> LiveQueryState {
        LiveQueryState {
            live: Live::new(
                Arc::clone(&self.realtime),
                Arc::clone(&self.backends),
                Arc::clone(&self.visitors),
                Arc::clone(&self.rate_limits),
                Arc::clone(&self.infra.config),
            ),
            deployments: Arc::clone(&self.deployments),
        }
    }
}
