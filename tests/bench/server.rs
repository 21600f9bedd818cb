//! Servers as processes: starts them, reads their usage, and stops them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use svc_tests::tls::CertificateFiles;

use super::client::Client;
use super::{minimal, minimal_ledger, minimal_rooms, minimal_sql};

/// The kernel counts processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);
/// Time limit of compiling guests.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit until another program's server listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit until a server is idle.
const REST_TIMEOUT: Duration = Duration::from_secs(120);

/// Limits that are too high to matter.
const SETTINGS: &str = "[limits]
deploy_per_minute = 1000000
deploy_burst = 1000000
active_deployments = 1000000
share_bytes = 1099511627776
owner_bytes = 1099511627776
cap_client_percent = 100
cap_owner_percent = 100
owner_per_minute = 1000000
owner_burst = 1000000
op_per_minute = 100000000
op_burst = 100000000
op_deployment_per_minute = 100000000
op_deployment_burst = 100000000
projects_free = 1000000
site_files_free = 20000
site_bytes_free = 1073741824
file_bytes_free = 104857600
storage_bytes_free = 10737418240
database_bytes = 268435456
";

/// Files and directories of a run.
#[derive(Debug)]
pub(crate) struct Bench {
    svc: PathBuf,
    own_program: PathBuf,
    work: PathBuf,
    settings: PathBuf,
}

/// Returns a free address; no other program on this machine takes one meanwhile.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// Returns the path of a program, if it is installed.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Servers are installed in this directory, even if it is not in the user's path.
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Time from the start to the log line that it serves.
    pub(crate) ready_after: Duration,
    /// When it was started.
    pub(crate) began: Instant,
    /// Output, which stays open: a node that stands by writes another line once it serves.
    _out: Option<ChildStdout>,
}

impl Bench {
    pub(crate) fn new(svc: PathBuf, own_program: PathBuf, work: &Path) -> anyhow::Result<Self> {
        let settings = work.join("svc.toml");
        std::fs::write(&settings, SETTINGS)?;
        Ok(Self {
            svc,
            own_program,
            work: work.to_owned(),
            settings,
        })
    }

    /// A directory of the run.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Starts `svc` on a data directory, with the cache of compiled guests that all parts share.
    pub(crate) fn start_svc(&self, data: &str) -> anyhow::Result<Running> {
        self.start_svc_with_cache(data, "cache")
    }

    /// Starts `svc` on a data directory; returns the address of its metrics, too.
    pub(crate) fn start_svc_with_metrics(
        &self,
        data: &str,
    ) -> anyhow::Result<(Running, SocketAddr)> {
        let metrics = free_address()?;
        let lines = format!("ops_listen = \"{metrics}\"\n{SETTINGS}");
        Ok((self.with_settings(data, &lines)?.start_svc(data)?, metrics))
    }

    /// Starts `svc` on a data directory and a cache.
    pub(crate) fn start_svc_with_cache(&self, data: &str, cache: &str) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.svc);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&self.settings)
            .arg("--data")
            .arg(self.directory(data))
            .arg("--cache")
            .arg(self.directory(cache));
        Running::start(command)
    }

    /// Makes a namespace in a data directory; returns its credential.
    pub(crate) fn create_namespace(&self, data: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.svc);
        command.args(["namespace", "create", "bench"]);
        Ok(self.run_for_output(data, command)?.trim().to_owned())
    }

    /// Runs a guest command on a data directory; returns its output.
    pub(crate) fn run_guest_command(
        &self,
        data: &str,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.svc);
        command.arg("guest").args(arguments).arg("--json");
        command.arg("--cache").arg(self.directory("cache"));
        Ok(serde_json::from_str(&self.run_for_output(data, command)?)?)
    }

    /// A command on a data directory.
    pub(crate) fn command(&self, data: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.svc);
        command.args(words).arg("--data").arg(self.directory(data));
        command
    }

    /// Runs a command on a data directory, and returns its output.
    fn run_for_output(&self, data: &str, mut command: Command) -> anyhow::Result<String> {
        command.arg("--data").arg(self.directory(data));
        let output = command.output()?;
        if !output.status.success() {
            bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Starts the minimal server on the pages in a directory.
    pub(crate) fn start_minimal(&self, pages: &Path) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.own_program);
        command.arg(minimal::ARGUMENT).arg(pages);
        Running::start(command)
    }

    /// Starts the minimal server of a database, which it makes.
    pub(crate) fn start_minimal_sql(&self, commits: &str) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.own_program);
        command.args([minimal_sql::ARGUMENT, commits]);
        command.arg(self.directory(&format!("minimal-{commits}.db")));
        Running::start(command)
    }

    /// Starts the minimal server of webhooks, with a new database.
    pub(crate) fn start_minimal_ledger(&self) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.own_program);
        command.arg(minimal_ledger::ARGUMENT);
        command.arg(self.directory("minimal-ledger.db"));
        Running::start(command)
    }

    /// Starts the minimal relay.
    pub(crate) fn start_minimal_rooms(&self) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.own_program);
        command.arg(minimal_rooms::ARGUMENT);
        Running::start(command)
    }

    /// Makes a namespace in a new data directory, and starts `svc` on it; returns the credential, too.
    pub(crate) fn start_owned(&self, data: &str) -> anyhow::Result<(Running, String)> {
        std::fs::create_dir_all(self.directory(data))?;
        let credential = self.create_namespace(data)?;
        let svc = self.start_svc(data)?;
        svc.await_guests()?;
        Ok((svc, credential))
    }

    /// Starts a server with some more limits, a line each.
    pub(crate) fn start_owned_with(
        &self,
        data: &str,
        limits: &str,
    ) -> anyhow::Result<(Running, String)> {
        let lines = format!("{SETTINGS}{limits}");
        self.with_settings(data, &lines)?.start_owned(data)
    }

    /// Starts a server with some more limits that trusts its clients as proxies, whose connections it does not count.
    pub(crate) fn start_owned_behind_proxies(
        &self,
        data: &str,
        limits: &str,
    ) -> anyhow::Result<(Running, String)> {
        let lines = format!("trusted_proxies = [\"127.0.0.0/8\"]\n{SETTINGS}{limits}");
        self.with_settings(data, &lines)?.start_owned(data)
    }

    /// Starts a server whose projects have origins, and domains that a DNS server proves.
    pub(crate) fn start_owned_with_domains(
        &self,
        data: &str,
        dns: SocketAddr,
    ) -> anyhow::Result<(Running, String)> {
        let lines = format!(
            "sites_domain = \"pages.bench.net\"\n[domains]\nresolver = \"{dns}\"\n{SETTINGS}domains_free = 1000000\n"
        );
        self.with_settings(data, &lines)?.start_owned(data)
    }

    /// Starts a server that speaks HTTPS as `localhost`, with a certificate that it shows for every name.
    pub(crate) fn start_https(
        &self,
        data: &str,
        pair: &CertificateFiles,
    ) -> anyhow::Result<Running> {
        let (cert, key) = (pair.cert(), pair.key());
        let lines = format!(
            "https = true\nbase_url = \"https://localhost\"\ntls_cert = {cert:?}\ntls_key = {key:?}\n{SETTINGS}"
        );
        self.with_settings(&format!("{data}-https"), &lines)?
            .start_svc(data)
    }

    /// Makes servers with more lines of settings.
    pub(crate) fn with_more_settings(&self, name: &str, lines: &str) -> anyhow::Result<Self> {
        self.with_settings(name, &format!("{SETTINGS}{lines}"))
    }

    /// Founds the cluster that the settings name, with an empty installation.
    pub(crate) fn found_cluster(&self, data: &str) -> anyhow::Result<()> {
        let mut command = Command::new(&self.svc);
        command.args(["cluster", "found", "--config"]);
        command.arg(&self.settings);
        self.run_for_output(data, command).map(drop)
    }

    /// Restores the installation of a cluster into a data directory; returns the answer of the command.
    pub(crate) fn restore_cluster(
        &self,
        data: &str,
        bucket: &str,
        ledger: &str,
    ) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.svc);
        command.args(["restore", "--json", "--from", bucket, "--ledger", ledger]);
        Ok(serde_json::from_str(&self.run_for_output(data, command)?)?)
    }

    /// Makes servers with other settings.
    fn with_settings(&self, name: &str, lines: &str) -> anyhow::Result<Self> {
        let settings = self.work.join(format!("{name}.toml"));
        std::fs::write(&settings, lines)?;
        Ok(Self {
            svc: self.svc.clone(),
            own_program: self.own_program.clone(),
            work: self.work.clone(),
            settings,
        })
    }

    /// Fills the cache of compiled guests, with their optimised code too, whose compilation would disturb the measurements.
    pub(crate) fn compile_guests(&self) -> anyhow::Result<()> {
        let first = self.start_svc("first")?;
        first.await_guests()?;
        first.await_rest()
    }
}

impl Running {
    /// Starts a server that listens on a given address and does not report it.
    pub(crate) fn start_at(mut command: Command, address: SocketAddr) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let began = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let mut running = Self {
            child,
            address,
            ready_after: Duration::ZERO,
            began,
            _out: None,
        };
        while running.client().is_err() {
            if running.child.try_wait()?.is_some() || began.elapsed() > LISTEN_TIMEOUT {
                bail!("{command:?} does not listen");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        running.ready_after = began.elapsed();
        Ok(running)
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let began = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let mut out = child.stdout.take().context("a server without an output")?;
        let mut line = String::new();
        BufReader::new(&mut out).read_line(&mut line)?;
        let ready_after = began.elapsed();
        let said = line.trim();
        let address = said
            .strip_prefix("ready http://")
            .or(said.strip_prefix("ready https://"))
            .or(said.strip_prefix("standby http://"))
            .and_then(|a| a.parse().ok());
        let Some(address) = address else {
            // Only the exit status is known: the output of a server is discarded.
            bail!("{command:?} did not start: {:?} {line:?}", child.wait()?);
        };
        Ok(Self {
            child,
            address,
            ready_after,
            began,
            _out: Some(out),
        })
    }

    /// A connection to it.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Client::connect(self.address)
    }

    /// Waits until pages can be published; returns how long that took from the start.
    pub(crate) fn await_guests(&self) -> anyhow::Result<Duration> {
        let mut client = self.client()?;
        while client.get("/readyz", "identity")?.status != 200 {
            if self.began.elapsed() > COMPILE_TIMEOUT {
                bail!("the guests did not load");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(self.began.elapsed())
    }

    /// Processor time used so far, in user and system mode.
    ///
    /// Includes child processes, because other servers may use workers.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let id = self.child.id().to_string();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let children = children.split_whitespace().map(cpu_of);
        children.fold(cpu_of(&id), |sum, child| Ok(sum? + child?))
    }

    /// Waits until the server is idle.
    pub(crate) fn await_rest(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let before = self.cpu()?;
            std::thread::sleep(Duration::from_millis(200));
            if self.cpu()? - before <= TICK {
                return Ok(());
            }
            if began.elapsed() > REST_TIMEOUT {
                bail!("the server does not come to rest");
            }
        }
    }

    /// Memory in use now and at its most, in megabytes.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let now = memory_of(self.child.id(), "VmRSS:").context("no VmRSS")?;
        let most = memory_of(self.child.id(), "VmHWM:").context("no VmHWM")?;
        Ok((now, most))
    }

    /// Number of open files, sockets among them.
    pub(crate) fn open_files(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// Resets the peak of the memory in use.
    pub(crate) fn reset_peak_memory(&self) -> anyhow::Result<()> {
        let file = format!("/proc/{}/clear_refs", self.child.id());
        std::fs::write(&file, "5").context(file)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended already is not an error; the leader of a group is killed with its workers.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Most memory of a process until now, in megabytes; `None` once it has ended.
pub(crate) fn peak_memory_of(process: u32) -> Option<f64> {
    memory_of(process, "VmHWM:")
}

/// A line of a process's status, in megabytes.
fn memory_of(process: u32, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// Processor time of a process, by its id or `self`.
pub(crate) fn cpu_of(process: &str) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in brackets, may hold anything; behind it utime and stime are the 12th and 13th.
    let (_, rest) = stat.rsplit_once(')').context("a stat without a name")?;
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.map(str::parse::<u32>).sum::<Result<_, _>>()?;
    Ok(TICK * ticks)
}
