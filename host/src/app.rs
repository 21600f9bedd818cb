//! The application: every service, made from its parts, and what all handlers share.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::OnceCell;

use crate::backends::Backends;
use crate::clock::Clock;
use crate::config::Config;
use crate::content::{Content, OnceFiles};
use crate::control::{Control, Secrets};
use crate::deployments::Deployments;
use crate::deployments::pages::Pages;
use crate::deployments::parts::Parts;
use crate::deployments::visits::Visits;
use crate::edge::Purger;
use crate::guests;
use crate::http::front::RequestIds;
use crate::http::hosts::Hosts;
use crate::http::idempotency::InFlight;
use crate::http::rate_limit::RateLimits;
use crate::landing::Landing;
use crate::projects::Projects;
use crate::random::Random;
use crate::sandbox::{Sandbox, SandboxConfig};
use crate::teardown::Teardown;
use crate::telemetry::Metrics;
use crate::workspaces::Workspaces;

/// What handlers share.
pub type SharedApp = Arc<App>;

/// The application.
#[derive(Debug)]
pub struct App {
    /// The effective settings.
    pub config: Arc<Config>,
    /// The time.
    pub clock: Clock,
    /// The control database.
    pub control: Control,
    /// The guests.
    pub sandbox: Sandbox,
    /// Whatever answers at a slug.
    pub deployments: Arc<Deployments>,
    /// Projects' databases and their actions.
    pub backends: Arc<Backends>,
    /// Envelopes of frontends.
    pub projects: Projects,
    /// The end of projects.
    pub teardown: Teardown,
    /// Tells the edge what to forget, if there is one.
    pub purger: Option<Purger>,
    /// Accounts and their keys.
    pub workspaces: Workspaces,
    /// The landing page and what stands beside it.
    pub landing: Landing,
    /// The names that we answer for.
    pub hosts: Hosts,
    /// The buckets of all clients.
    pub rate_limits: RateLimits,
    /// Idempotency keys whose first request is still running.
    pub in_flight: InFlight,
    /// Names for requests.
    pub request_ids: RequestIds,
    /// What operators measure.
    pub metrics: Metrics,
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
            parts: Parts::default(),
            pages: Arc::new(Pages::new(
                config.limits.page_cache_bytes,
                config.limits.page_bytes,
            )),
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
        );
        let purger = match &config.edge {
            Some(edge) => Some(Purger::new(control.clone(), clock.clone(), edge)?),
            None => None,
        };
        Ok(Arc::new(Self {
            teardown: Teardown::new(
                projects.clone(),
                Arc::clone(&deployments),
                Arc::clone(&backends),
            ),
            projects,
            purger,
            landing: Landing::default(),
            hosts: Hosts::new(&config),
            rate_limits: RateLimits::new(&config.limits, &clock),
            in_flight: InFlight::default(),
            request_ids: RequestIds::new(u32::from_le_bytes(random.bytes()?)),
            metrics: Metrics::new(&sandbox, &deployments),
            workspaces,
            config,
            clock,
            control,
            sandbox,
            deployments,
            backends,
        }))
    }
}

fn sandbox_config(config: &Config, clock: &Clock) -> SandboxConfig {
    SandboxConfig {
        guests: guests::choices(&config.guests, clock.now()),
        limits: config.limits.guests(),
        ..SandboxConfig::new(config.cache.clone())
    }
}
