//! The application: every service, made from its parts, and what all handlers share.

use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::FromRef;
use tokio::sync::OnceCell;

use crate::access::idempotency::Idempotency;
use crate::access::{Callers, Tokens};
use crate::accounts::{Accounts, Billing, Plans};
use crate::backends::Backends;
use crate::backends::calls::routes::Calls;
use crate::config::Config;
use crate::content::{Content, OnceFiles};
use crate::control::{Change, Control, Secrets};
use crate::deployments::Deployments;
use crate::deployments::pages::Pages;
use crate::deployments::timings::Timings;
use crate::deployments::visits::Visits;
use crate::edge::Purger;
use crate::envelope::Teardown;
use crate::gauges::Gauges;
use crate::guests;
use crate::http::hosts::Hosts;
use crate::http::rate_limit::RateLimits;
use crate::http::request_ids::RequestIds;
use crate::landing::Landing;
use crate::mcp::Tools;
use crate::mcp::app::AppTools;
use crate::outbound::Outbound;
use crate::payments::Payments;
use crate::payments::routes::Till;
use crate::projects::Projects;
use crate::realtime::Realtime;
use crate::realtime::live::Live;
use crate::realtime::live::routes::LiveQueries;
use crate::realtime::routes::Rooms;
use crate::stripe::dev::{self, DevProvider};
use crate::stripe::{Consumer, Receiver, Stripe};
use crate::telemetry::Metrics;
use crate::visitors::dev::DevIssuer;
use crate::visitors::dev::routes::MaybeIssuer;
use crate::visitors::{Visitors, end_not_allowed};
use crate::workspaces::Workspaces;
use svc_base::clock::Clock;
use svc_base::random::Random;
use svc_sandbox::{Sandbox, SandboxConfig};

/// The application as handlers share it: each takes the services that it uses.
#[derive(Clone, Debug)]
pub struct SharedApp(Arc<App>);

impl std::ops::Deref for SharedApp {
    type Target = App;
    fn deref(&self) -> &App {
        &self.0
    }
}

macro_rules! services {
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

services! {
    /// The effective settings.
    config: Arc<Config>,
    /// The time.
    clock: Clock,
    /// The control database.
    control: Control,
    /// The guests.
    sandbox: Sandbox,
    /// Pages at their slugs.
    deployments: Arc<Deployments>,
    /// Projects' databases and their actions.
    backends: Arc<Backends>,
    /// Rooms in which pages talk to each other.
    realtime: Arc<Realtime>,
    /// State that sockets of visitors need.
    rooms: Rooms,
    /// Prices that projects sell, and payments of visitors.
    payments: Arc<Payments>,
    /// State that visitors' payments need.
    till: Till,
    /// Takes the payment provider's webhooks in, if one is configured.
    webhooks: Option<Arc<Receiver>>,
    /// The payment provider that this server itself is, while somebody tries things out.
    dev_provider: Option<Arc<DevProvider>>,
    /// State that live queries of visitors need.
    live_queries: LiveQueries,
    /// Envelopes of frontends.
    projects: Projects,
    /// Visitors who are somebody.
    visitors: Arc<Visitors>,
    /// The issuer inside the server, while developing.
    dev_issuer: MaybeIssuer,
    /// Projects with all that is in them.
    teardown: Teardown,
    /// State that calls of visitors need.
    calls: Calls,
    /// State that tools need.
    tools: Tools,
    /// State that an app's own tools need.
    app_tools: AppTools,
    /// Tells the edge what to forget, if there is one.
    purger: Option<Arc<Purger>>,
    /// Accounts and their keys.
    workspaces: Workspaces,
    /// Workspaces with all that they own.
    accounts: Accounts,
    /// Tells who calls.
    callers: Callers,
    /// The landing page and what stands beside it.
    landing: Arc<Landing>,
    /// The names that we answer for.
    hosts: Arc<Hosts>,
    /// The buckets of all clients.
    rate_limits: Arc<RateLimits>,
    /// First answers to repeated requests.
    idempotency: Idempotency,
    /// Names for requests.
    request_ids: Arc<RequestIds>,
    /// Metrics for operators.
    metrics: Arc<Metrics>,
    /// Metrics that are read when they are asked for.
    gauges: Arc<Gauges>,
}

impl App {
    /// Opens everything below the data directory. Guests go on loading in the background.
    ///
    /// # Errors
    /// When something below the data or cache directory cannot be opened.
    pub async fn open(config: Config, clock: Clock, random: Random) -> anyhow::Result<SharedApp> {
        let data = &config.data;
        let control = Control::open(data).context("opening the control database")?;
        let secrets = Secrets::load(&control, &random).await?;
        let content = Content::open(&data.join("content"))?;
        let once = OnceFiles::open(&data.join("once"))?;
        let sandbox =
            Sandbox::start(sandbox_config(&config, &clock)).context("starting the sandbox")?;
        let seed = u64::from_le_bytes(random.bytes()?);
        let config = Arc::new(config);
        let pages = Arc::new(Pages::new(
            config.limits.page_cache_bytes,
            config.limits.page_bytes,
        ));
        let followed = Arc::clone(&pages);
        control.follow(move |change| {
            if let Change::Slug(slug) = change {
                followed.forget(slug);
            }
        });
        let realtime = Realtime::new(clock.clone(), random.clone(), config.limits.clone());
        let realtime = Arc::new(realtime);
        // Behind the pages: it looks at those that the change is about.
        control.follow(realtime.follower());
        let deployments = Arc::new(Deployments {
            control: control.clone(),
            content,
            once,
            sandbox: sandbox.clone(),
            clock: clock.clone(),
            random: random.clone(),
            config: Arc::clone(&config),
            secrets,
            runtime: OnceCell::new(),
            reservations: Arc::default(),
            timings: Timings::default(),
            pages,
            visits: Visits::new(seed),
        });
        deployments
            .finish_burning()
            .await
            .context("removing burnt shares")?;
        deployments
            .end_unfinished()
            .await
            .context("ending interrupted creations")?;
        let backends = Arc::new(Backends::new(
            control.clone(),
            clock.clone(),
            random.clone(),
            Arc::clone(&config),
            Arc::clone(&deployments),
            sandbox.clone(),
        )?);
        backends.count_rooms_by(realtime.counter());
        backends
            .settle_owners()
            .await
            .context("removing databases that no backend owns")?;
        let workspaces = Workspaces::new(control.clone(), clock.clone(), random.clone());
        let projects = Projects::new(
            control.clone(),
            clock.clone(),
            random.clone(),
            Arc::clone(&config),
            workspaces.clone(),
            end_not_allowed,
        );
        let outbound = Outbound::new()?;
        let tokens = config
            .oauth
            .as_ref()
            .map(|oauth| Tokens::new(oauth, outbound.clone(), clock.clone()))
            .transpose()
            .context("in oauth.issuer")?;
        let callers = Callers::new(workspaces.clone(), tokens);
        let visitors = Visitors::new(projects.clone(), Arc::clone(&deployments), outbound.clone())?;
        let visitors = Arc::new(visitors);
        control.follow(visitors.follower());
        let dev_issuer = DevIssuer::of(&config, &clock, &random)?.map(Arc::new);
        let purger = config
            .edge
            .as_ref()
            .map(|edge| Purger::new(control.clone(), clock.clone(), outbound.clone(), edge))
            .map(Arc::new);
        let stand_in = dev::settings(&config, &random)?;
        let stripe = config.stripe.as_ref().or(stand_in.as_ref());
        let provider = stripe
            .map(|settings| Stripe::new(outbound.clone(), settings))
            .transpose()?;
        let price = stripe.and_then(|settings| settings.plan_price.clone());
        let billing = Billing::new(provider.clone(), price, &config, random.clone());
        let payments = Arc::new(Payments::new(
            control.clone(),
            clock.clone(),
            random.clone(),
            projects.clone(),
            provider,
        ));
        payments
            .settle_begun()
            .await
            .context("settling interrupted checkouts")?;
        backends.ask_what_is_behind(payments.what_is_behind());
        // Everybody whom events of the payment provider may concern.
        let consumers: Vec<Arc<dyn Consumer>> = vec![Arc::clone(&payments) as _, Arc::new(Plans)];
        let webhooks = stripe
            .map(|settings| Receiver::new(control.clone(), clock.clone(), settings, consumers))
            .map(Arc::new);
        let dev_provider = stand_in
            .map(|settings| {
                let (control, clock) = (control.clone(), clock.clone());
                DevProvider::new(&config, settings, outbound, control, clock, random.clone())
            })
            .map(Arc::new);
        let rate_limits = Arc::new(RateLimits::new(&config.limits, &clock));
        let mut gauges = Gauges::default();
        let metrics = Arc::new(Metrics::new(|registry| {
            gauges = Gauges::register(registry);
            deployments.register(registry);
            sandbox.metrics().register(registry);
            realtime.register(registry);
        }));
        let teardown = Teardown::new(
            workspaces.clone(),
            projects.clone(),
            Arc::clone(&deployments),
            Arc::clone(&backends),
            Arc::clone(&visitors),
            Arc::clone(&payments),
        );
        let calls = Calls {
            backends: Arc::clone(&backends),
            deployments: Arc::clone(&deployments),
            projects: projects.clone(),
            visitors: Arc::clone(&visitors),
            callers: callers.clone(),
            rate_limits: Arc::clone(&rate_limits),
            config: Arc::clone(&config),
        };
        let accounts = Accounts::new(
            workspaces.clone(),
            teardown.clone(),
            billing,
            Arc::clone(&config),
        );
        let app = Self {
            app_tools: AppTools::new(calls.clone(), Arc::clone(&metrics), clock.clone()),
            calls,
            tools: Tools {
                callers: callers.clone(),
                accounts: accounts.clone(),
                projects: projects.clone(),
                envelope: teardown.clone(),
                deployments: Arc::clone(&deployments),
                visitors: Arc::clone(&visitors),
                backends: Arc::clone(&backends),
                realtime: Arc::clone(&realtime),
                payments: Arc::clone(&payments),
                metrics: Arc::clone(&metrics),
                clock: clock.clone(),
                config: Arc::clone(&config),
            },
            rooms: Rooms {
                realtime: Arc::clone(&realtime),
                backends: Arc::clone(&backends),
                deployments: Arc::clone(&deployments),
                visitors: Arc::clone(&visitors),
                config: Arc::clone(&config),
            },
            till: Till {
                payments: Arc::clone(&payments),
                deployments: Arc::clone(&deployments),
                visitors: Arc::clone(&visitors),
                config: Arc::clone(&config),
            },
            payments,
            webhooks,
            dev_provider,
            live_queries: LiveQueries {
                live: Live::new(
                    Arc::clone(&realtime),
                    Arc::clone(&backends),
                    Arc::clone(&visitors),
                    Arc::clone(&rate_limits),
                    Arc::clone(&config),
                ),
                deployments: Arc::clone(&deployments),
            },
            landing: Arc::new(Landing::new(Arc::clone(&config))),
            hosts: Arc::new(Hosts::new(&config)),
            request_ids: Arc::new(RequestIds::new(u32::from_le_bytes(random.bytes()?))),
            idempotency: Idempotency::new(
                control.clone(),
                clock.clone(),
                deployments.secrets.idempotency.clone(),
            ),
            accounts,
            callers,
            teardown,
            projects,
            visitors,
            dev_issuer,
            purger,
            rate_limits,
            metrics,
            gauges: Arc::new(gauges),
            workspaces,
            config,
            clock,
            control,
            sandbox,
            deployments,
            backends,
            realtime,
        };
        Ok(SharedApp(Arc::new(app)))
    }
}

fn sandbox_config(config: &Config, clock: &Clock) -> SandboxConfig {
    SandboxConfig {
        guests: guests::choices(&config.guests, clock.now()),
        limits: config.limits.guests(),
        ..SandboxConfig::new(config.cache.clone())
    }
}
