//! A running server: its listeners, its background tasks, and its stop.

mod access_log;
mod admission;
mod advice;
mod answer_format;
mod background;
mod canonical_path;
mod connections;
mod front;
mod guard;
mod handshakes;
mod linger;
mod mounts;
mod other_nodes;
pub mod placement;
mod proxied_messages;
mod proxy;
#[cfg(test)]
mod proxy_tests;
mod redirect;
#[cfg(test)]
mod regate_tests;
mod request_kind;
mod standby;
mod takeover;
mod tls_ask;
mod tunnel;

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::proxy::RequestProxy;
use self::redirect::PlainHttpNames;
use self::standby::StandbyListeners;
use crate::app::{App, SharedApp};
use crate::backup;
use crate::cluster::{
    ClusterNode, ControlWait, ERRANDS_SERVICE, JoinedNode, ServingClusterNode, found,
};
use crate::config::{CertificateSettings, Config, Settings};
use crate::control::ControlChange;
use crate::data_dir::{self, NewDirectoryGuard};
use crate::data_lock::DataLock;
use crate::guests::watch::{GuestWatcher, GuestWatcherHandle};
use crate::operators::OperatorSocketListener;
use crate::overview::status_file::StatusFile;
use crate::tls::{CertifiedNames, NameOwner, Tls};
use crate::workspaces::Principal;
use svc_base::clock::Clock;
use svc_base::random::Random;

/// A running server.
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

/// Node that serves, and its wait for control if another one has that.
type BegunNode = (Arc<ServingClusterNode>, Option<ControlWait>);

/// A server that has its data directory and its listeners, and does not serve yet.
#[derive(Debug)]
pub struct PreparedServer {
    config: Config,
    clock: Clock,
    random: Random,
    data: PathBuf,
    resources: StartResources,
    operators: OperatorSocketListener,
    /// This server as a node of several, and its listeners until it serves.
    node: Option<(JoinedNode, StandbyListeners)>,
}

impl PreparedServer {
    /// Binds the listeners and takes the data directory. A node of several joins the ledger.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub async fn prepare(settings: Settings, clock: Clock, random: Random) -> anyhow::Result<Self> {
        let data = settings.data();
        if backup::is_backup(&data) {
            bail!(
                "{} is a backup: restore it into a data directory",
                data.display()
            );
        }
        if settings.cluster.is_none() && found::installation_id(&data)?.is_some() {
            bail!(
                "{} is the data directory of a node of several, and the settings have no [cluster]: name the file that has it with --config. `svc restore --from` makes a directory of one machine; where `svc cluster found` never came to its end, delete cluster.id instead",
                data.display()
            );
        }
        let resources = StartResources::acquire(&data, &settings).await?;
        backup::finish_interrupted(&data)?;
        let address = resources.listener.local_addr()?;
        resources.lock.announce(address)?;
        // Commands that connect from now on wait until the server is ready.
        let operators = OperatorSocketListener::bind(&data)?;
        let config = settings.resolve(address)?;
        let node = match &config.cluster {
            None => None,
            Some(cluster) => {
                // Joining may wait for the ledger, or until an earlier run is dead.
                let starting = StandbyListeners::start(&config, &clock, &resources, None)?;
                let joining = ClusterNode::join(&config, cluster, &clock, &random);
                Some((Box::pin(joining).await?, starting))
            }
        };
        let prepared = Self {
            config,
            clock,
            random,
            data,
            resources,
            operators,
            node,
        };
        prepared.stand_by().await
    }

    /// Begins to answer as a standby, if it is one, and says so to commands.
    async fn stand_by(mut self) -> anyhow::Result<Self> {
        if let Some((joined, starting)) = self.node.take_if(|(joined, _)| joined.is_standby()) {
            starting.stop().await;
            let (config, resources) = (&self.config, &self.resources);
            let node = Some(&joined.node);
            let waiting = StandbyListeners::start(config, &self.clock, resources, node)?;
            let ops = resources.ops.as_ref();
            let ops_address = ops.and_then(|ops| ops.local_addr().ok());
            StatusFile::new(config, ops_address, self.clock.now()).write(&self.data)?;
            self.node = Some((joined, waiting));
        }
        Ok(self)
    }

    /// Whether this is a node that serves nothing before it has control.
    pub fn is_standby(&self) -> bool {
        let node = self.node.as_ref();
        node.is_some_and(|(joined, _)| joined.is_standby())
    }

    /// Returns this server as a node of several, if it is one.
    pub fn node(&self) -> Option<ClusterNode> {
        let node = self.node.as_ref();
        node.map(|(joined, _)| joined.node.clone())
    }

    /// Scheme of the server's URLs: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        scheme(&self.config)
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.config.listen
    }

    /// Serves. A standby waits for control before, and answers as one meanwhile; another node follows, and takes control when it is to be
    /// had.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub async fn serve(mut self) -> anyhow::Result<Server> {
        let joined = self.node.take();
        let ready = watch::Sender::new(false);
        let (cluster, control, waiting) = match joined {
            None => (None, None, None),
            Some((joined, waiting)) => {
                let (node, control) = Box::pin(self.begin(joined, &ready)).await?;
                (Some(node), control, Some(waiting))
            }
        };
        let app = App::open(self.config, self.clock, self.random, cluster).await?;
        if let Some(waiting) = waiting {
            waiting.stop().await;
        }
        let mut server = Server::run(app, &self.data, self.resources, self.operators).await?;
        if let Some(node) = &server.app.cluster {
            node.note_serving();
        }
        server.take_over_after(control);
        ready.send_replace(true);
        Ok(server)
    }

    /// Loads what this node serves; a standby waits for control before.
    async fn begin(
        &self,
        joined: JoinedNode,
        ready: &watch::Sender<bool>,
    ) -> anyhow::Result<BegunNode> {
        let (node, ready) = (joined.node.clone(), ready.subscribe());
        tokio::select! {
            begun = joined.serve(&self.data) => begun,
            never = self.operators.serve_standby(&node, &ready) => match never {},
        }
    }
}

impl Server {
    /// Binds the listeners, opens the data directory, and starts serving.
    ///
    /// # Errors
    /// When a setting is wrong, an address is taken, or the data directory is held by another server.
    pub async fn start(settings: Settings, clock: Clock, random: Random) -> anyhow::Result<Self> {
        let prepared = Box::pin(PreparedServer::prepare(settings, clock, random)).await?;
        Box::pin(prepared.serve()).await
    }

    /// Serves what is in the data directory.
    async fn run(
        app: SharedApp,
        data: &Path,
        resources: StartResources,
        operators: OperatorSocketListener,
    ) -> anyhow::Result<Self> {
        let StartResources {
            guard,
            lock,
            listener,
            ops,
            redirect,
        } = resources;
        let tls = open_tls(&app, redirect.is_some()).await?;
        let (stop, stopped) = watch::channel(false);
        let node = app.cluster.as_ref();
        let proxy = node.map(|node| Arc::new(RequestProxy::new(node, &app.config)));
        let mut serving = vec![tokio::spawn(connections::serve(
            listener,
            app.clone(),
            (tls.clone(), proxy),
            stopped.clone(),
        ))];
        let redirect_address = redirect.as_ref().and_then(|one| one.local_addr().ok());
        let proxies = app.config.trusted_proxies.clone();
        let redirects = PlainHttpNames::new(&app, tls.clone());
        let redirect = redirect.map(|at| redirect::serve(at, redirects, proxies, stopped.clone()));
        serving.extend(redirect.map(tokio::spawn));
        let ops_address = ops.as_ref().and_then(|ops| ops.local_addr().ok());
        let ops = ops.map(|at| connections::serve_operators(at, app.clone(), stopped.clone()));
        serving.extend(ops.map(tokio::spawn));
        let (watcher, asked) = GuestWatcherHandle::channel();
        let commands = operators.serve(app.clone(), watcher, stopped.clone());
        serving.push(tokio::spawn(commands));
        let said = StatusFile::new(&app.config, ops_address, app.clock.now());
        said.write(data)?;
        let watch = GuestWatcher::open(data, &app.config, app.sandbox.clone(), app.clock.clone())?;
        let mut background = background::start(&app, (watch, asked), said, &stopped);
        let follow = |tls| background::run_certificate_refresh(Arc::clone(tls), &app, &stopped);
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

    /// Has this node take control once it is to be had, if another one has it.
    fn take_over_after(&mut self, control: Option<ControlWait>) {
        let taking =
            control.map(|control| takeover::run(control, self.app.clone(), self.stop.subscribe()));
        self.background.extend(taking.map(tokio::spawn));
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.app.config.listen
    }

    /// Returns the address of the operators' listener.
    pub fn ops_address(&self) -> Option<SocketAddr> {
        self.ops
    }

    /// Returns the address of the listener that redirects plain HTTP.
    pub fn redirect_address(&self) -> Option<SocketAddr> {
        self.redirect
    }

    /// Scheme of its URLs: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        scheme(&self.app.config)
    }

    /// The application, for commands and tests that work beside it.
    pub fn app(&self) -> &SharedApp {
        &self.app
    }

    /// Stops accepting, finishes running requests, stores the counted views, and releases the data directory.
    ///
    /// # Errors
    /// When the last views could not be written.
    pub async fn stop(self) -> anyhow::Result<()> {
        if let Some(node) = &self.app.cluster {
            node.note_stop();
        }
        // No receiver is left.
        let _ = self.stop.send(true);
        for task in self.serving.into_iter().chain(self.background) {
            // A panic of the task is in the log.
            let _ = task.await;
        }
        if let Some(tls) = self.tls {
            tls.stop().await;
        }
        if let Err(error) = self.app.visitor_files.follow_changes().await {
            // The next start looks at all databases.
            tracing::warn!(
                error = format!("{error:#}"),
                "files of visitors are not followed"
            );
        }
        if let Some(node) = &self.app.cluster {
            node.run().peers().withdraw(ERRANDS_SERVICE);
        }
        let flushed = self.app.serving.flush_all_visits().await;
        let flushed = flushed.and(self.app.activity.flush_all().await);
        if let Some(node) = &self.app.cluster {
            node.stop_following();
        }
        let (app, node) = (self.app.clone(), self.app.cluster.clone());
        drop(self.app);
        let closing = tokio::task::spawn_blocking(move || {
            app.backends.close();
            app.control.close();
            drop(app);
        });
        match node {
            None => closing.await?,
            Some(node) => node.leave_after(closing).await?,
        }
        drop(self.lock);
        flushed.context("writing the last views")
    }
}

fn scheme(config: &Config) -> &'static str {
    if config.https { "https" } else { "http" }
}

/// Resources that a start takes: the data directory and the listeners.
#[derive(Debug)]
struct StartResources {
    guard: NewDirectoryGuard,
    lock: DataLock,
    listener: TcpListener,
    ops: Option<TcpListener>,
    redirect: Option<TcpListener>,
}

impl StartResources {
    /// Takes the resources in an order that creates nothing if one of them is not available.
    async fn acquire(data: &Path, settings: &Settings) -> anyhow::Result<Self> {
        // Mistakes in the settings are found before anything is created.
        Tls::check(&settings.clone().resolve(settings.listen())?)?;
        if data.exists()
            && let Some(was_open) = data_dir::restrict(data)?
        {
            tracing::warn!("{was_open}");
        }
        let mut guard = NewDirectoryGuard::begin(data)?;
        // The lock comes before the port, so that a second start fails with "a server runs" rather than "port taken".
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

/// Opens the listener that redirects plain HTTP; the default port may be taken by another program.
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

/// Opens the certificates, if the server speaks HTTPS, and has those of domains end with them. `has_http` says whether plain HTTP is
/// listened to.
async fn open_tls(app: &SharedApp, has_http: bool) -> anyhow::Result<Option<Arc<Tls>>> {
    let (projects, domains) = (app.projects.clone(), app.domains.clone());
    let kept_domains = match &app.config.certificates {
        Some(CertificateSettings::Acme(_)) => domains.list_kept().await?,
        _ => HashSet::new(),
    };
    let certified = CertifiedNames {
        find_label_owner: Arc::new(move |label| {
            let projects = projects.clone();
            Box::pin(async move { Ok(projects.owner_of_label(label).await?.map(name_owner)) })
        }),
        find_domain_owner: Arc::new(move |name| {
            let domains = domains.clone();
            Box::pin(async move { Ok(domains.owner_of_active(name).await?.map(name_owner)) })
        }),
        domains: Arc::clone(app.domains.served()),
        kept_domains,
        has_http,
    };
    let tls = Tls::open(&app.config, &app.clock, certified)?.map(Arc::new);
    if let Some(tls) = &tls {
        let tls = Arc::downgrade(tls);
        app.control.on_change(move |change| {
            if let (ControlChange::DomainEnded(name), Some(tls)) = (change, tls.upgrade()) {
                tls.end_domain(name);
            }
        });
    }
    Ok(tls)
}

/// Returns the principal by whom new certificates are counted.
fn name_owner(owner: Principal) -> NameOwner {
    NameOwner {
        principal: owner.name,
        is_free_tier: owner.is_free_tier,
    }
}

/// Opens a listener; on a machine without IPv6, all interfaces means those of IPv4.
async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && lacks_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    };
    listener.with_context(|| format!("listening on {address}"))
}

/// Whether binding failed because the machine has no IPv6, rather than for a port that is taken or forbidden.
fn lacks_ipv6(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
    )
}
