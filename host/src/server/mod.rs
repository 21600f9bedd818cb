//! A running server: its listeners, its background work, and its end.

mod background;
mod connections;
mod front;
mod linger;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::{App, SharedApp};
use crate::backup;
use crate::clock::Clock;
use crate::config::Settings;
use crate::data_lock::DataLock;
use crate::guests::watch::Watch;
use crate::random::Random;
use crate::router::Routers;

/// A server that serves until it is stopped.
#[derive(Debug)]
pub struct Server {
    app: SharedApp,
    ops: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
    background: Vec<JoinHandle<()>>,
    lock: DataLock,
}

impl Server {
    /// Binds, opens the data directory, and serves.
    ///
    /// # Errors
    /// When a setting is wrong, an address is taken, or the data directory is held by another server.
    pub async fn start(settings: Settings, clock: Clock) -> anyhow::Result<Self> {
        let random = Random::system();
        let data = settings.data();
        if backup::is_backup(&data) {
            bail!(
                "{} is a backup: restore it into a data directory",
                data.display()
            );
        }
        let lock = DataLock::take(&data)?;
        backup::settle(&data)?;
        let wanted = settings.listen();
        let listener = TcpListener::bind(wanted)
            .await
            .with_context(|| format!("listening on {wanted}"))?;
        let address = listener.local_addr()?;
        lock.announce(address)?;
        let config = settings.resolve(address)?;
        let ops = match config.ops_listen {
            Some(ops) => Some(
                TcpListener::bind(ops)
                    .await
                    .with_context(|| format!("listening on {ops}"))?,
            ),
            None => None,
        };
        let app = App::open(config, clock, random).await?;
        let (stop, stopped) = watch::channel(false);
        let mut serving = vec![tokio::spawn(connections::serve(
            listener,
            app.clone(),
            Arc::new(Routers::new(&app)),
            stopped.clone(),
        ))];
        let ops_address = ops.as_ref().and_then(|ops| ops.local_addr().ok());
        if let Some(ops) = ops {
            serving.push(tokio::spawn(connections::serve_operators(
                ops,
                app.clone(),
                stopped.clone(),
            )));
        }
        let watch = Watch::begin(&data, &app.config, app.sandbox.clone(), app.clock.clone())?;
        let background = background::start(&app, watch, &stopped);
        Ok(Self {
            app,
            ops: ops_address,
            stop,
            serving,
            background,
            lock,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.app.config.listen
    }

    /// Where operators' numbers are.
    pub fn ops_address(&self) -> Option<SocketAddr> {
        self.ops
    }

    /// The application, for commands and tests that work beside it.
    pub fn app(&self) -> &SharedApp {
        &self.app
    }

    /// Stops accepting, finishes what is running, writes down what is counted, and lets the data directory go.
    ///
    /// # Errors
    /// When the last views could not be written.
    pub async fn stop(self) -> anyhow::Result<()> {
        // Nobody listening any more is as good as told.
        let _ = self.stop.send(true);
        for task in self.serving.into_iter().chain(self.background) {
            // A task that panicked has said so in the log.
            let _ = task.await;
        }
        self.app
            .deployments
            .flush_all_visits()
            .await
            .context("writing the last views")?;
        let app = self.app;
        tokio::task::spawn_blocking(move || {
            app.backends.close();
            app.control.close();
            drop(app);
        })
        .await?;
        drop(self.lock);
        Ok(())
    }
}
