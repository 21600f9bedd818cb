//! The ledgers of installations of several nodes in this process: one server of PostgreSQL for all tests, with a database for each
//! installation, and a directory for each as its bucket. Both are copies of an installation that was founded once.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use svc::cluster::found;
use svc::config::{ClusterTable, Settings};
use svc_base::clock::Clock;
use svc_base::random::Random;
use tempfile::TempDir;
use tokio::runtime;
use tokio::sync::OnceCell;
use tokio_postgres::{Config, NoTls};
use url::Url;

use crate::postgres::{programs, run, user};
use crate::server::{NOW, guest_cache_dir};
use crate::wait::DEADLINE;

/// Settings of the server. Nothing is synced to the disk: it ends with the tests.
const SETTINGS: &str = "
listen_addresses = ''
max_connections = 400
shared_buffers = 64MB
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 256MB
autovacuum = off
";
/// Commands that outlive this process, since values of a whole process are never dropped: they wait for the end of their input, which
/// comes with that of the process, whatever ends it, and clear up.
const CLEARING_UP: &str = "cat; kill -QUIT \"$1\"; sleep 1; rm -rf \"$2\"";
/// Database of the installation that was founded, which is only copied.
const FOUNDED: &str = "founded";
/// Database that statements of operators run in.
const OPERATORS: &str = "postgres";
/// Directory of the server's socket.
const SOCKETS: &str = "s";
/// Time after which the disks of nodes that have ended are removed.
const REMOVED_AFTER: Duration = Duration::from_secs(3);
/// Longest time without a beat. Nobody dies here, and a machine with much to do may be late with everything.
const SUSPECT_SECONDS: u16 = 60;

static SERVER: OnceCell<LedgerServer> = OnceCell::const_new();

/// The server of PostgreSQL.
#[derive(Debug)]
struct LedgerServer {
    /// Directory of everything here.
    directory: PathBuf,
    _process: Child,
    /// Program that clears up, which has its input from here.
    _clearing_up: Child,
}

/// Disks of an installation of several nodes: a directory for each node, the bucket, and the ledger. They are removed a while after this
/// value, when no thread of the nodes is left that would end the process because of it.
#[derive(Debug)]
pub(crate) struct NodeDisks {
    database: String,
    directory: Option<TempDir>,
}

impl NodeDisks {
    /// Makes those of an installation that nobody has used yet.
    pub(crate) async fn new() -> Self {
        static INSTALLATIONS: AtomicU64 = AtomicU64::new(0);
        let server = SERVER.get_or_init(LedgerServer::start).await;
        let number = INSTALLATIONS.fetch_add(1, Ordering::Relaxed);
        let database = format!("installation_{number}");
        server
            .execute(&format!("CREATE DATABASE {database} TEMPLATE {FOUNDED}"))
            .await;
        let directory = TempDir::new_in(&server.directory).unwrap();
        let disks = Self {
            database,
            directory: Some(directory),
        };
        fs::create_dir(disks.bucket()).unwrap();
        copy_directory(&server.bucket(), &disks.bucket());
        disks
    }

    fn directory(&self) -> &Path {
        let directory = self.directory.as_ref();
        directory.expect("it is there until the drop").path()
    }

    /// Directory that is the bucket.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.directory().join("bucket")
    }

    /// Data directory of the node with this number, which counts from 1.
    pub(crate) fn data(&self, number: usize) -> PathBuf {
        self.directory().join(format!("n{number}"))
    }

    /// Settings of the node with this number.
    pub(crate) fn table(&self, number: usize) -> ClusterTable {
        let server = SERVER.get().expect("the ledger was made");
        table(number, server.url(&self.database), &self.bucket())
    }
}

impl Drop for NodeDisks {
    fn drop(&mut self) {
        let directory = self.directory.take();
        let removal = format!("DROP DATABASE {} WITH (FORCE)", self.database);
        // A runtime may not be waited for in a task.
        thread::spawn(move || {
            thread::sleep(REMOVED_AFTER);
            drop(directory);
            let server = SERVER.get().expect("the ledger was made");
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(server.execute(&removal));
        });
    }
}

/// Settings of a node of several.
fn table(number: usize, ledger: String, bucket: &Path) -> ClusterTable {
    ClusterTable {
        name: Some(format!("n{number}")),
        ledger: Some(ledger.into()),
        bucket: Some(Url::from_file_path(bucket).unwrap()),
        peer_listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        synced_standbys: Some(0),
        suspect_seconds: Some(SUSPECT_SECONDS),
        ..ClusterTable::default()
    }
}

impl LedgerServer {
    /// Starts the server, and founds the installation that all others begin as.
    async fn start() -> Self {
        let directory = TempDir::with_prefix("svc-ledgers-").unwrap().keep();
        let user = geteuid().is_root().then(user);
        let (data, sockets) = (directory.join("data"), directory.join(SOCKETS));
        fs::create_dir(&sockets).unwrap();
        if let Some((user, group)) = user {
            for path in [&directory, &sockets] {
                chown(path, Some(user), Some(group)).unwrap();
            }
        }
        let command = |program: &str| {
            let mut command = Command::new(programs().join(program));
            command.current_dir(&directory).stdin(Stdio::null());
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            command
        };
        let mut making = command("initdb");
        making.arg("--pgdata").arg(&data);
        making.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        making.args(["--locale=C", "--no-sync", "--no-instructions"]);
        run(making);
        // The file is its user's, and stays so.
        let settings = data.join("postgresql.conf");
        let mut text = fs::read_to_string(&settings).unwrap();
        text.push_str(SETTINGS);
        let shown = sockets.display();
        text.push_str(&format!("unix_socket_directories = '{shown}'\n"));
        fs::write(&settings, text).unwrap();
        let mut serving = command("postgres");
        let log = fs::File::create(directory.join("log")).unwrap();
        serving.arg("-D").arg(&data);
        serving.stdout(log.try_clone().unwrap()).stderr(log);
        let process = serving.spawn().unwrap();
        let server = Self {
            _clearing_up: clear_up_at_the_end(&process, &directory),
            _process: process,
            directory,
        };
        server.wait_until_it_answers().await;
        server.execute(&format!("CREATE DATABASE {FOUNDED}")).await;
        server.found().await;
        server
    }

    async fn wait_until_it_answers(&self) {
        let started = Instant::now();
        while self.connect().await.is_err() {
            assert!(started.elapsed() < DEADLINE, "PostgreSQL does not answer");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Founds an empty installation, as `svc cluster found` does.
    async fn found(&self) {
        let settings = Settings {
            data: Some(self.directory.join("one")),
            cache: Some(guest_cache_dir()),
            cluster: Some(table(1, self.url(FOUNDED), &self.bucket())),
            ..Settings::default()
        };
        let config = settings.resolve(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        let config = config.unwrap();
        let founding = move || {
            // Nobody may be connected to a database that is copied: its connections end with this runtime.
            let runtime = runtime::Builder::new_multi_thread().enable_all().build();
            let (runtime, clock, random) = (runtime.unwrap(), Clock::manual(NOW), Random::system());
            let founded = runtime.block_on(found::run(&config, &clock, &random));
            founded.expect("the installation is founded");
        };
        tokio::task::spawn_blocking(founding).await.unwrap();
    }

    /// Bucket of the installation that was founded.
    fn bucket(&self) -> PathBuf {
        self.directory.join("bucket")
    }

    fn sockets(&self) -> PathBuf {
        self.directory.join(SOCKETS)
    }

    /// URL of a database, as nodes have it in their settings.
    fn url(&self, database: &str) -> String {
        let host = self.sockets().to_str().unwrap().replace('/', "%2F");
        format!("postgresql://postgres@{host}/{database}")
    }

    async fn connect(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let mut config = Config::new();
        config.host_path(self.sockets());
        config.user("postgres").dbname(OPERATORS);
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Runs a statement, as an operator does.
    async fn execute(&self, statement: &str) {
        let client = self.connect().await.unwrap();
        client.batch_execute(statement).await.unwrap();
    }
}

/// Has a server end, and its directory removed, when this process has ended.
fn clear_up_at_the_end(server: &Child, directory: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", CLEARING_UP, "sh", &server.id().to_string()]);
    command.arg(directory).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // An interrupt at the terminal is for the tests.
    command.process_group(0).spawn().unwrap()
}

/// Copies the files below a directory into another one.
fn copy_directory(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&copy).unwrap();
            copy_directory(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap();
        }
    }
}
