//! A running server: its listeners, its background work, and its end.

mod access_log;
mod admission;
mod advice;
mod background;
mod connections;
mod front;
mod handshakes;
mod linger;
mod redirect;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::app::{App, SharedApp};
use crate::backup;
use crate::config::Settings;
use crate::data_dir::{self, NewDirectoryGuard};
use crate::data_lock::DataLock;
use crate::guests::watch::{GuestWatcher, WatcherHandle};
use crate::operators::Listener;
use crate::overview::status_file::StatusFile;
use crate::tls::{FindOwner, LabelOwner, Names, Tls};
use svc_base::clock::Clock;
use svc_base::random::Random;

/// A server that serves until it is stopped.
#[derive(Debug)]
pub struct Server {
    app: SharedApp,
    ops: Option<SocketAddr>,
    redirect: Option<SocketAddr>,
    tls: Option<Arc<Tls>>,
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
    pub async fn start(settings: Settings, clock: Clock, random: Random) -> anyhow::Result<Self> {
        let data = settings.data();
        if backup::is_backup(&data) {
            bail!(
                "{} is a backup: restore it into a data directory",
                data.display()
            );
        }
        let StartResources {
            guard,
            lock,
            listener,
            ops,
            redirect,
        } = StartResources::acquire(&data, &settings).await?;
        backup::finish_interrupted(&data)?;
        let address = listener.local_addr()?;
        lock.announce(address)?;
        // Commands that come from now on wait here until the server is ready.
        let operators = Listener::bind(&data)?;
        let app = App::open(settings.resolve(address)?, clock, random).await?;
        let tls = Tls::open(&app.config, &app.clock, label_owners(&app))?.map(Arc::new);
        let (stop, stopped) = watch::channel(false);
        let mut serving = vec![tokio::spawn(connections::serve(
            listener,
            app.clone(),
            tls.clone(),
            stopped.clone(),
        ))];
        let redirect_address = redirect.as_ref().and_then(|one| one.local_addr().ok());
        let (names, proxies) = (Names::new(&app.config), app.config.trusted_proxies.clone());
        let redirect = redirect.map(|at| redirect::serve(at, names, proxies, stopped.clone()));
        serving.extend(redirect.map(tokio::spawn));
        let ops_address = ops.as_ref().and_then(|ops| ops.local_addr().ok());
        let ops = ops.map(|at| connections::serve_operators(at, app.clone(), stopped.clone()));
        serving.extend(ops.map(tokio::spawn));
        let (watcher, asked) = WatcherHandle::channel();
        let commands = operators.serve(app.clone(), watcher, stopped.clone());
        serving.push(tokio::spawn(commands));
        let said = StatusFile::new(&app.config, ops_address, app.clock.now());
        said.write(&data)?;
        let watch = GuestWatcher::open(&data, &app.config, app.sandbox.clone(), app.clock.clone())?;
        let mut background = background::start(&app, (watch, asked), said, &stopped);
        let follow = |tls| background::follow_certificates(Arc::clone(tls), &app, &stopped);
        background.extend(tls.as_ref().map(follow));
        if let Err(error) = advice::log_startup(&app, ops_address).await {
            tracing::error!(error = format!("{error:#}"), "what is unsafe is not known");
        }
        guard.disarm();
        Ok(Self {
            app,
            ops: ops_address,
            redirect: redirect_address,
            tls,
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

    /// Where visitors of plain HTTP are sent to HTTPS from.
    pub fn redirect_address(&self) -> Option<SocketAddr> {
        self.redirect
    }

    /// Scheme of its URLs: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.app.config.https {
            "https"
        } else {
            "http"
        }
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
        // No receiver is left.
        let _ = self.stop.send(true);
        for task in self.serving.into_iter().chain(self.background) {
            // A task that panicked has said so in the log.
            let _ = task.await;
        }
        if let Some(tls) = self.tls {
            tls.stop().await;
        }
        self.app
            .serving
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

/// Claim of a server on its directory and its addresses.
#[derive(Debug)]
struct StartResources {
    guard: NewDirectoryGuard,
    lock: DataLock,
    listener: TcpListener,
    ops: Option<TcpListener>,
    redirect: Option<TcpListener>,
}

impl StartResources {
    /// Takes them, in an order that makes nothing where something is in the way.
    async fn acquire(data: &Path, settings: &Settings) -> anyhow::Result<Self> {
        // A mistake in the settings is found before anything is made.
        Tls::check(&settings.clone().resolve(settings.listen())?)?;
        if data.exists()
            && let Some(was_open) = data_dir::restrict(data)?
        {
            tracing::warn!("{was_open}");
        }
        let mut guard = NewDirectoryGuard::begin(data)?;
        // Whoever starts twice is told that a server runs rather than that its port is taken.
        let lock = match DataLock::file_exists(data) {
            true => Some(DataLock::take(data)?),
            false => None,
        };
        let listener = listen(settings.listen()).await?;
        let ops = match settings.ops_listen {
            Some(ops) => Some(listen(ops).await?),
            None => None,
        };
        let redirect = match settings.redirects() {
            Some((address, is_requested)) => listen_for_redirects(address, is_requested).await?,
            None => None,
        };
        let lock = match lock {
            Some(lock) => lock,
            None => DataLock::take(data)?,
        };
        guard.check_if_new(&lock)?;
        Ok(Self {
            guard,
            lock,
            listener,
            ops,
            redirect,
        })
    }
}

/// Listens where visitors of plain HTTP are sent to HTTPS from; a port that nobody asked for may be another's.
async fn listen_for_redirects(
    address: SocketAddr,
    is_requested: bool,
) -> anyhow::Result<Option<TcpListener>> {
    match listen(address).await {
        Err(error) if !is_requested => {
            let error = format!("{error:#}");
            tracing::warn!(
                error,
                "visitors of plain HTTP are not sent to HTTPS: free the port, or name another one by `redirect_listen`"
            );
            Ok(None)
        }
        listener => listener.map(Some).context("redirect_listen"),
    }
}

/// Finds the owner of a label, by whom new certificates are counted.
fn label_owners(app: &SharedApp) -> FindOwner {
    let projects = app.projects.clone();
    Arc::new(move |label| {
        let projects = projects.clone();
        Box::pin(async move {
            let owner = projects.owner_of_label(label).await?;
            Ok(owner.map(|owner| LabelOwner {
                principal: owner.name,
                is_free_tier: owner.is_free_tier,
            }))
        })
    })
}

/// Listens; where a machine has no IPv6, every interface means those of IPv4.
async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    listener.with_context(|| format!("listening on {address}"))
}

/// Whether the machine has no such addresses, rather than none to give.
fn lacks_ipv6(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}
