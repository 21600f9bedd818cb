//! The real server in the test's own process, on a port of its own; or several nodes in its place (`crate::nodes`).

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use svc::config::{Limits, Settings};
use svc::server::Server;
use svc_base::clock::{Clock, Timestamp};
use svc_base::random::Random;
use tempfile::TempDir;
use tokio::sync::OnceCell;
use url::Url;

use crate::answer::{Answer, ReadAnswer, exchange};
use crate::ledgers::NodeDisks;
use crate::nodes::{self, Nodes};
use crate::one_machine;
use crate::process::{Binary, Output};
use crate::socket::Socket;
use crate::tls::{self, CertificateFiles};
use crate::wait::{DEADLINE, wait_until};

/// Where a test's clock stands at first: 2026-11-20T12:00:00.000Z.
pub const NOW: Timestamp = Timestamp(1_795_176_000_000);

/// Variable of the environment that names the store of content of servers that say nothing of it, as a URL.
pub const CONTENT_URL_VARIABLE: &str = "SVC_TESTS_CONTENT_URL";

/// Compiled guests, which all servers of all tests share: below cargo's target directory, and nobody else's.
pub fn guest_cache_dir() -> PathBuf {
    // The test binary lies in <target>/<profile>/deps.
    let binary = std::env::current_exe().unwrap();
    let target = binary.ancestors().nth(3).unwrap();
    let cache = target.join("tests-cache");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&cache)
        .unwrap();
    cache
}

/// The store of content that the environment names; of a bucket a prefix of the server's own, because servers share none.
fn content_store_url() -> Option<Url> {
    static SERVERS: AtomicUsize = AtomicUsize::new(0);
    let mut url: Url = std::env::var(CONTENT_URL_VARIABLE).ok()?.parse().unwrap();
    if url.scheme() == "s3" {
        let (process, server) = (std::process::id(), SERVERS.fetch_add(1, Ordering::Relaxed));
        url.set_path(&format!("{}/{process}-{server}", url.path()));
    }
    Some(url)
}

/// Settings of a server under test.
#[derive(Debug)]
pub struct Builder {
    settings: Settings,
    clock: Clock,
    /// Certificates that clients believe, in PEM.
    roots: Option<String>,
    /// Number of nodes, if that is not the environment's.
    nodes: Option<usize>,
}

impl Builder {
    /// Has it be so many nodes behind a relay, whatever the environment asks for.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = Some(count);
        self
    }

    /// Changes any setting.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Has it speak HTTPS with a pair in files, which its client believes.
    #[must_use]
    pub fn https(mut self, pair: &CertificateFiles) -> Self {
        self.settings.https = Some(true);
        self.settings.tls_cert = Some(pair.cert());
        self.settings.tls_key = Some(pair.key());
        self.roots = Some(pair.pem().to_owned());
        self
    }

    /// Changes limits.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.settings.limits);
        self
    }

    /// The limits of the service, where a test is about them.
    #[must_use]
    pub fn service_limits(mut self) -> Self {
        self.settings.limits = Limits::default();
        self
    }

    /// The machine's clock instead of one that stands still until a test moves it.
    #[must_use]
    pub fn system_clock(mut self) -> Self {
        self.clock = Clock::system();
        self
    }

    /// A clock of the test's own.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Starts it on an empty data directory.
    pub async fn start(self) -> TestServer {
        compile_guests_once().await;
        let requested = || nodes::requested().filter(|_| !one_machine::is_required(&self.settings));
        let count = self.nodes.or_else(requested);
        let disks = ServerDisks {
            data: TempDir::new().unwrap(),
            nodes: match count {
                Some(count) => Some((count, NodeDisks::new().await)),
                None => None,
            },
        };
        TestServer::open(self.settings, self.clock, self.roots, disks).await
    }
}

/// Compiles the guests once for a test run; other servers wait for it.
async fn compile_guests_once() {
    static WARM: OnceCell<()> = OnceCell::const_new();
    let start = || async {
        let disks = ServerDisks {
            data: TempDir::new().unwrap(),
            nodes: None,
        };
        let builder = TestServer::builder();
        let server = TestServer::open(builder.settings, builder.clock, None, disks).await;
        let ready = async || (server.get("/readyz").answer().await.status == 200).then_some(());
        wait_until("the guests to be compiled", ready).await;
        server.stop().await;
    };
    WARM.get_or_init(start).await;
}

/// ServerDisks that outlive a restart: the data directory, or those of several nodes, with their number.
#[derive(Debug)]
struct ServerDisks {
    data: TempDir,
    nodes: Option<(usize, NodeDisks)>,
}

/// A running server, its data directory, and a client without redirects and proxies.
#[derive(Debug)]
pub struct TestServer {
    /// The nodes, if there are several. They end before the server and the disks are dropped.
    nodes: Option<Nodes>,
    /// The server; of several nodes that which has control.
    server: Server,
    settings: Settings,
    disks: ServerDisks,
    clock: Clock,
    roots: Option<String>,
    client: Client,
}

impl TestServer {
    /// A server with a manual clock and rate limits that tests of other things do not meet.
    pub fn builder() -> Builder {
        let mut limits = Limits::default();
        for burst in [
            &mut limits.deploy_burst,
            &mut limits.preview_burst,
            &mut limits.auth_burst,
            &mut limits.report_burst,
            &mut limits.sign_in_burst,
            &mut limits.owner_burst,
            &mut limits.mcp_burst,
            &mut limits.op_burst,
            &mut limits.op_deployment_burst,
            &mut limits.checkout_burst,
            &mut limits.upload_burst,
            &mut limits.upload_deployment_burst,
            &mut limits.file_burst,
            &mut limits.sockets_per_ip,
        ] {
            *burst = 100_000;
        }
        let settings = Settings {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            cache: Some(guest_cache_dir()),
            content_url: content_store_url(),
            limits,
            ..Settings::default()
        };
        Builder {
            settings,
            clock: Clock::manual(NOW),
            roots: None,
            nodes: None,
        }
    }

    /// Starts a server with the settings of [`TestServer::builder`].
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    async fn open(
        mut settings: Settings,
        clock: Clock,
        roots: Option<String>,
        disks: ServerDisks,
    ) -> Self {
        settings.data = Some(disks.data.path().to_owned());
        let (nodes, server) = match &disks.nodes {
            None => {
                let starting = Server::start(settings.clone(), clock.clone(), Random::system());
                (None, starting.await.expect("the server starts"))
            }
            Some((count, disks)) => {
                let (nodes, owner) = Nodes::start(&settings, &clock, *count, disks).await;
                (Some(nodes), owner)
            }
        };
        // A kept connection would have all requests answered by one node.
        let kept = if nodes.is_some() { 0 } else { usize::MAX };
        let believed = roots.as_deref().unwrap_or_default().as_bytes();
        let believed = reqwest::Certificate::from_pem_bundle(believed).unwrap();
        // The machine's own certificates would be read anew for each client.
        let client = crate::http_client()
            .tls_certs_only(believed)
            .redirect(reqwest::redirect::Policy::none())
            .timeout(DEADLINE)
            .pool_max_idle_per_host(kept)
            .no_proxy()
            .build()
            .unwrap();
        Self {
            nodes,
            server,
            settings,
            disks,
            clock,
            roots,
            client,
        }
    }

    /// Stops it in good order and starts it on the same data directory, on another port.
    pub async fn restart(self) -> Self {
        let (settings, clock) = (self.settings.clone(), self.clock.clone());
        let roots = self.roots.clone();
        let disks = self.halt().await;
        Self::open(settings, clock, roots, disks).await
    }

    /// Restarts with other settings.
    pub async fn restart_with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.restart().await
    }

    /// Restarts, after a change of its data directory while no server has it.
    ///
    /// # Panics
    /// When it is several nodes: they believe no data directory.
    pub async fn restart_after_change(self, meanwhile: impl AsyncFnOnce(&Path)) -> Self {
        assert!(self.nodes.is_none(), "{}", one_machine::NO_DISK);
        let (settings, clock) = (self.settings.clone(), self.clock.clone());
        let roots = self.roots.clone();
        let disks = self.halt().await;
        meanwhile(disks.data.path()).await;
        Self::open(settings, clock, roots, disks).await
    }

    /// Stops it in good order; returns its data directory, which of several nodes is none of theirs.
    pub async fn stop(self) -> TempDir {
        self.halt().await.data
    }

    async fn halt(self) -> ServerDisks {
        let Self {
            nodes,
            server,
            disks,
            client,
            ..
        } = self;
        drop(client);
        match nodes {
            None => server.stop().await.expect("the server stops"),
            Some(nodes) => nodes.stop(server).await,
        }
        disks
    }

    /// The server; of several nodes that which has control.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Whether several nodes are in the place of one server.
    pub fn has_several_nodes(&self) -> bool {
        self.nodes.is_some()
    }

    /// Address for clients; of several nodes that of the relay.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The data directory.
    ///
    /// # Panics
    /// When it is several nodes, which have none in common.
    #[track_caller]
    pub fn data(&self) -> &Path {
        assert!(self.nodes.is_none(), "{}", one_machine::NO_DISK);
        self.disks.data.path()
    }

    /// Opens a WebSocket.
    ///
    /// # Errors
    /// The status with which it is refused.
    pub async fn socket(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, u16> {
        let Some(roots) = &self.roots else {
            return Socket::open(self.address(), path, headers).await;
        };
        let config = tls::client_config(roots, &["http/1.1"]);
        let stream = tls::connect(self.address(), "localhost", config).await;
        let host = format!("localhost:{}", self.address().port());
        Socket::open_over(Box::new(stream.unwrap()), &host, path, headers).await
    }

    /// Moves the manual clock on.
    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.server.scheme(), self.address())
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub fn head(&self, path: &str) -> RequestBuilder {
        self.request(Method::HEAD, path)
    }

    /// A POST without a body.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    /// Sends a POST with a JSON body.
    pub fn json(&self, path: &str, body: &Value) -> RequestBuilder {
        self.post(path).json(body)
    }

    /// Publishes a share; returns the document of the 201.
    pub async fn deploy(&self, body: &Value) -> Value {
        let answer = self.json("/api/v1/deploy", body).answer().await;
        answer.expect(201).json()
    }

    /// Publishes a share; returns its slug.
    pub async fn publish_slug(&self, body: &Value) -> String {
        self.deploy(body).await["slug"].as_str().unwrap().to_owned()
    }

    /// Unlocks a page; returns the cookie to send.
    pub async fn unlock(&self, slug: &str, password: &str) -> String {
        let body = serde_json::json!({ "password": password });
        let path = format!("/api/v1/auth/{slug}");
        let answer = self.json(&path, &body).answer().await.expect(200);
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Sends raw bytes, and reads until the server closes.
    pub async fn raw(&self, request: impl Into<Vec<u8>>) -> Answer {
        let (address, request) = (self.address(), request.into());
        let exchange = move || Answer::parse(&exchange(address, &request));
        tokio::task::spawn_blocking(exchange).await.unwrap()
    }

    /// Sends a GET with a path that no client library has normalized, and any `Host`.
    pub async fn get_raw(&self, host: &str, path: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        self.raw(request).await
    }

    /// Runs an operator's command on its data directory, as a process; of several nodes on that of the next in turn.
    pub async fn command(&self, binary: &Binary, arguments: &[&str]) -> Output {
        let next = self.nodes.as_ref().map(Nodes::data_of_next);
        let data = next.unwrap_or_else(|| self.disks.data.path());
        binary.run(data, arguments).await
    }

    /// Counts the rows of those tables of the control database that begin empty.
    pub fn rows(&self) -> Vec<(String, i64)> {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            let control = &self.server.app().control;
            control
                .read_blocking(|c| c.query_row(&sql, [], |row| row.get(0)))
                .unwrap()
        };
        ["deployments", "reports", "idempotency", "workspaces"]
            .map(|table| (table.to_owned(), count(table)))
            .to_vec()
    }

    /// Returns row counts and content files, to be compared before and after a request that must store nothing.
    pub fn snapshot(&self) -> (Vec<(String, i64)>, Vec<String>) {
        let nodes = self.disks.nodes.as_ref();
        let bucket = nodes.map(|(_, disks)| disks.bucket());
        let content = bucket.unwrap_or_else(|| self.disks.data.path().to_owned());
        let files = ["content", "once"].map(|part| crate::disk::names(&content.join(part)));
        (self.rows(), files.concat())
    }

    /// Writes visits to the database; returns those of a page.
    pub async fn visits(&self, slug: &str) -> u64 {
        let followers = self.nodes.iter().flat_map(Nodes::followers);
        for node in followers.chain([&self.server]) {
            node.app().serving.flush_visits().await.unwrap();
        }
        let app = self.server.app();
        if let Some(node) = &app.cluster {
            let counters = app.control.counters();
            node.refresh_views(&counters).await.unwrap();
        }
        self.written_visits(slug).await
    }

    /// Returns the visits of a page that are in the database by now.
    pub async fn written_visits(&self, slug: &str) -> u64 {
        let control = &self.server.app().control;
        let slug = slug.to_owned();
        let sql = "SELECT id FROM deployments WHERE slug = ?1";
        let id = control.read(move |c| c.query_row(sql, [slug], |row| row.get(0)));
        control.counters().visits(&id.await.unwrap())
    }
}
