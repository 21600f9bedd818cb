//! PostgreSQL of the machine's packages: a primary, and standbys that it waits for, reached by sockets in a directory of their own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

use crate::tls::CertificateFiles;
use crate::wait::{DEADLINE, wait_until};

/// Names of the servers, which the primary knows its standbys by. The first one begins as the primary.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Standbys that a commit waits for.
pub const SYNCED: &str = "ANY 1 (a, b, c)";

/// Settings of every server. Nothing is synced to the disk: servers are killed here, and not the machine. A standby may not have fewer
/// connections than its primary began with.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
shared_buffers = 16MB
wal_retrieve_retry_interval = 100ms
wal_keep_size = 64MB
autovacuum = off
";
/// Settings of servers whose commits are on the disk when they are answered, for measurements.
const DURABLE_SETTINGS: &str = "
listen_addresses = ''
shared_buffers = 128MB
wal_retrieve_retry_interval = 100ms
wal_keep_size = 256MB
";

/// Three servers. They end with this value.
#[derive(Debug)]
pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    /// User and group that the servers run as, if we are root: they refuse to be root.
    user: Option<(u32, u32)>,
    running: [Option<Child>; 3],
}

impl Postgres {
    /// Starts a primary and two standbys, and waits until the primary waits for them.
    pub async fn start() -> Self {
        let directory = TempDir::with_prefix("svc-pg-").unwrap();
        Self::start_with(directory, SETTINGS).await
    }

    /// Starts the servers below a directory that every user may enter, with commits that are on its disk when they are answered.
    pub async fn start_durable(below: &Path) -> Self {
        let directory = TempDir::with_prefix_in("svc-pg-", below).unwrap();
        Self::start_with(directory, DURABLE_SETTINGS).await
    }

    async fn start_with(directory: TempDir, settings: &str) -> Self {
        let mut servers = Self {
            directory,
            programs: programs(),
            user: geteuid().is_root().then(user),
            running: [None, None, None],
        };
        servers.own(servers.directory.path());
        let first = servers.data(0);
        let mut command = servers.command("initdb");
        command.arg("--pgdata").arg(&first);
        command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        command.args(["--locale=C", "--no-sync", "--no-instructions"]);
        run(command);
        for standby in 1..NAMES.len() {
            let mut command = servers.other("cp");
            command.arg("-a").arg(&first).arg(servers.data(standby));
            run(command);
        }
        for at in 0..NAMES.len() {
            let sockets = servers.sockets(at);
            fs::create_dir(&sockets).unwrap();
            servers.own(&sockets);
            let mut text = fs::read_to_string(servers.data(at).join("postgresql.conf")).unwrap();
            let shown = sockets.display();
            text.push_str(settings);
            text.push_str(&format!(
                "unix_socket_directories = '{shown}'\nsynchronous_standby_names = '{SYNCED}'\n"
            ));
            servers.write(at, "postgresql.conf", &text);
        }
        servers.run(0).await;
        servers.run_standby(1, 0).await;
        servers.run_standby(2, 0).await;
        servers.wait_for_standbys(0, 2).await;
        servers
    }

    fn data(&self, at: usize) -> PathBuf {
        self.directory.path().join(NAMES[at])
    }

    fn sockets(&self, at: usize) -> PathBuf {
        self.directory.path().join(format!("{}.s", NAMES[at]))
    }

    fn own(&self, path: &Path) {
        if let Some((user, group)) = self.user {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn write(&self, at: usize, name: &str, text: &str) {
        let path = self.data(at).join(name);
        fs::write(&path, text).unwrap();
        self.own(&path);
    }

    /// A program of PostgreSQL's, as the user that it runs as.
    fn command(&self, program: &str) -> Command {
        self.other(self.programs.join(program))
    }

    fn other(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// URL of all servers: clients find the one that takes writes.
    pub fn url(&self) -> String {
        let hosts = (0..NAMES.len()).map(|at| self.sockets(at).to_str().unwrap().to_owned());
        let hosts: Vec<_> = hosts.map(|path| path.replace('/', "%2F")).collect();
        format!("postgresql://postgres@{}/postgres", hosts.join(","))
    }

    /// Starts a server as it was when it ended, and waits until it answers.
    pub async fn run(&mut self, at: usize) {
        let log = fs::File::create(self.directory.path().join(format!("{}.log", NAMES[at])));
        let log = log.unwrap();
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data(at));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.running[at] = Some(command.spawn().unwrap());
        let started = Instant::now();
        while self.connect(at).await.is_none() {
            let ended = self.running[at].as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "PostgreSQL has ended: {ended:?}");
            assert!(started.elapsed() < DEADLINE, "PostgreSQL does not answer");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Starts the first server anew: at an address of this machine, by TLS alone, for the user `postgres` with a password.
    pub async fn run_with_tls(&mut self, address: &str, certificate: &CertificateFiles) {
        self.sql(0, "ALTER ROLE postgres PASSWORD 'secret'").await;
        self.stop(0);
        let access =
            "local all all trust\nlocal replication all trust\nhostssl all all all scram-sha-256\n";
        self.write(0, "pg_hba.conf", access);
        self.write(0, "server.crt", certificate.pem());
        let key = fs::read_to_string(certificate.key()).unwrap();
        self.write(0, "server.key", &key);
        let private = Permissions::from_mode(0o600);
        fs::set_permissions(self.data(0).join("server.key"), private).unwrap();
        let text = format!("listen_addresses = '{address}'\nssl = on\n");
        self.write(0, "postgresql.auto.conf", &text);
        self.run(0).await;
    }

    /// Starts a server as a standby of another.
    pub async fn run_standby(&mut self, at: usize, primary: usize) {
        let (name, host) = (NAMES[at], self.sockets(primary));
        let host = host.display();
        let from = format!("host={host} port=5432 user=postgres application_name={name}");
        self.write(at, "standby.signal", "");
        let text = format!("primary_conninfo = '{from}'\n");
        self.write(at, "postgresql.auto.conf", &text);
        self.run(at).await;
    }

    /// Stops a server where it is: it answers nothing and keeps its connections.
    pub fn pause(&self, at: usize) {
        self.signal_all(at, Signal::STOP);
    }

    /// Sends a signal to all processes of a server.
    fn signal_all(&self, at: usize, signal: Signal) {
        for id in self.processes_of(at).into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(id, signal);
        }
    }

    /// Ids of all processes of all servers.
    pub fn processes(&self) -> Vec<i32> {
        let all = (0..NAMES.len()).flat_map(|at| self.processes_of(at));
        all.collect()
    }

    /// Ids of the processes of a server, that of the one which was started first.
    fn processes_of(&self, at: usize) -> Vec<i32> {
        let Some(process) = &self.running[at] else {
            return Vec::new();
        };
        let first = process.id();
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        let first = i32::try_from(first).into_iter();
        first.chain(children).collect()
    }

    /// Ends a server at once, as a crash does.
    pub fn stop(&mut self, at: usize) {
        self.signal_all(at, Signal::CONT);
        if let Some(mut process) = self.running[at].take() {
            let _ = kill_process(Pid::from_child(&process), Signal::QUIT);
            process.wait().unwrap();
        }
    }

    /// Ends both standbys of the first server, the second one last: so it lacks nothing that the third one has.
    pub async fn stop_standbys(&mut self) {
        let lag = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn < pg_current_wal_lsn()";
        wait_until("standbys that lack nothing", async || {
            (self.rows(0, lag).await == 0).then_some(())
        })
        .await;
        self.stop(2);
        self.stop(1);
    }

    /// Kills a primary, and makes the standby a primary that has more: it has all that was acknowledged. The two others follow it then, the
    /// killed one with a new copy, since it may have more than was acknowledged. Returns the new primary.
    pub async fn fail_over(&mut self, primary: usize) -> usize {
        self.stop(primary);
        let standbys: Vec<_> = (0..NAMES.len()).filter(|at| *at != primary).collect();
        let (first, second) = (standbys[0], standbys[1]);
        let (new, other) = match self.received(first).await >= self.received(second).await {
            true => (first, second),
            false => (second, first),
        };
        self.promote(new).await;
        self.stop(other);
        self.run_standby(other, new).await;
        self.rebuild(primary, new).await;
        self.wait_for_standbys(new, 2).await;
        new
    }

    /// Returns how much a standby has received, in bytes of the log.
    async fn received(&self, standby: usize) -> i64 {
        let last = "GREATEST(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())";
        let look = format!("SELECT pg_wal_lsn_diff({last}, '0/0')::int8");
        let client = self.connect(standby).await.unwrap();
        let row = client.query_one(look.as_str(), &[]).await.unwrap();
        row.get(0)
    }

    /// Replaces the data of a server that has ended by a copy of another's.
    fn copy(&self, at: usize, from: usize) {
        let settings = fs::read_to_string(self.data(at).join("postgresql.conf")).unwrap();
        fs::remove_dir_all(self.data(at)).unwrap();
        let mut command = self.command("pg_basebackup");
        command.arg("--pgdata").arg(self.data(at));
        command.arg("--host").arg(self.sockets(from));
        command.args(["--port=5432", "--username=postgres"]);
        command.args(["--checkpoint=fast", "--no-sync", "--no-manifest"]);
        run(command);
        self.write(at, "postgresql.conf", &settings);
    }

    /// Makes a standby a primary.
    pub async fn promote(&self, at: usize) {
        self.sql(at, "SELECT pg_promote()").await;
    }

    /// Makes a server anew as a standby of another one, whatever it has.
    pub async fn rebuild(&mut self, at: usize, primary: usize) {
        self.stop(at);
        self.copy(at, primary);
        self.run_standby(at, primary).await;
    }

    /// Socket of a server.
    pub fn socket(&self, at: usize) -> PathBuf {
        self.sockets(at).join(".s.PGSQL.5432")
    }

    /// Number of type `bigint` that a statement answers first, if it answers one.
    pub async fn number(&self, at: usize, statement: &str) -> Option<i64> {
        let client = self.connect(at).await?;
        let rows = client.query(statement, &[]).await.unwrap();
        rows.first().and_then(|row| row.get(0))
    }

    /// Waits until so many standbys follow a primary, which waits for them.
    pub async fn wait_for_standbys(&self, primary: usize, count: usize) {
        let synced = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'quorum'";
        wait_until("standbys", async || {
            (self.rows(primary, synced).await == count).then_some(())
        })
        .await;
    }

    /// Sets whom a primary waits for, as an operator does.
    pub async fn set_synced(&self, primary: usize, names: &str) {
        let change = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        self.sql(primary, &change).await;
        self.sql(primary, "SELECT pg_reload_conf()").await;
        let look = format!(
            "SELECT 1 FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = '{names}'"
        );
        wait_until("a setting", async || {
            (self.rows(primary, &look).await == 1).then_some(())
        })
        .await;
    }

    /// Waits until a statement with this text waits for the standbys, and returns the id of its process at the server.
    pub async fn waiting(&self, primary: usize, part: &str) -> i32 {
        let look = format!(
            "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%{part}%'"
        );
        wait_until(part, async || {
            let client = self.connect(primary).await?;
            let rows = client.query(look.as_str(), &[]).await.ok()?;
            rows.first().map(|row| row.get(0))
        })
        .await
    }

    /// Runs a statement at one server, as an operator does.
    pub async fn sql(&self, at: usize, statement: &str) {
        let client = self.connect(at).await.unwrap();
        client.batch_execute(statement).await.unwrap();
    }

    /// Runs a statement in a transaction, and stops in the middle of it: as a client that is paused, until the value is dropped.
    pub async fn stop_in(&self, at: usize, statement: &str) -> Client {
        let client = self.connect(at).await.unwrap();
        let statements = format!("BEGIN; {statement}");
        client.batch_execute(&statements).await.unwrap();
        client
    }

    /// Connects to the first server, as an operator does.
    pub async fn client(&self) -> Client {
        self.connect(0).await.unwrap()
    }

    /// Number of rows that a statement returns.
    async fn rows(&self, at: usize, statement: &str) -> usize {
        let client = self.connect(at).await.unwrap();
        client.query(statement, &[]).await.unwrap().len()
    }

    async fn connect(&self, at: usize) -> Option<Client> {
        let mut config = Config::new();
        config.host_path(self.sockets(at));
        config.user("postgres").dbname("postgres");
        let (client, connection) = config.connect(NoTls).await.ok()?;
        tokio::spawn(connection);
        Some(client)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for (at, name) in NAMES.iter().enumerate() {
            if std::thread::panicking() {
                let log = self.directory.path().join(format!("{name}.log"));
                eprintln!("{}", fs::read_to_string(log).unwrap_or_default());
            }
            self.stop(at);
        }
    }
}

/// Whether PostgreSQL is installed.
pub fn is_installed() -> bool {
    find_programs().is_some()
}

/// Directory of PostgreSQL's programs.
pub(crate) fn programs() -> PathBuf {
    find_programs().expect("PostgreSQL is not installed: install the package `postgresql`")
}

/// Directory of the newest PostgreSQL there is: Debian's packages keep it off the path.
fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let debian = versions.filter_map(|version| {
        let version = version.ok()?;
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| (0, directory));
    let found = debian
        .chain(on_path)
        .filter(|(_, directory)| directory.join("postgres").exists())
        .max_by_key(|(number, _)| *number);
    found.map(|(_, directory)| directory)
}

/// The user `postgres`, with its group.
pub(crate) fn user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let entry = users
        .lines()
        .find_map(|line| line.strip_prefix("postgres:"));
    let entry = entry.expect("there is no user `postgres`: install the package `postgresql`");
    let mut numbers = entry
        .split(':')
        .skip(1)
        .map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[track_caller]
pub(crate) fn run(mut command: Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
