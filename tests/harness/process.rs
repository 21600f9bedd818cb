//! The `svc` command as a process of its own: for signals, for kills, and for what it prints.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::answer::{Answer, ReadAnswer};
use crate::server::guest_cache_dir;
use crate::wait::{DEADLINE, wait_until};

#[derive(Clone, Debug)]
pub struct Binary(PathBuf);

/// Output of a command that has ended.
#[derive(Debug)]
pub struct Output {
    pub success: bool,
    /// Exit status, unless a signal ended the command.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// The JSON document that a successful command answered.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert!(self.success, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

impl Binary {
    /// The program that cargo built, unless `SVC_BIN` names another, such as a release build.
    pub fn new(built: &str) -> Self {
        Self(std::env::var_os("SVC_BIN").map_or_else(|| built.into(), PathBuf::from))
    }

    /// The program with nothing in its environment that could change what it does.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.env_clear().env("SVC_CACHE", guest_cache_dir());
        command
    }

    /// Runs a command on a data directory to its end.
    pub async fn run(&self, data: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.env("SVC_DATA", data).args(arguments);
        run_command(command).await
    }

    /// Runs a command that dies at a fault point (`svc_base::fault`).
    pub async fn run_to_fault(&self, fault: &str, data: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command();
        command.env("SVC_FAULT", fault).env("SVC_DATA", data);
        command.args(arguments);
        run_command(command).await
    }

    /// Starts a server on a free port and waits until it is ready.
    pub async fn serve(&self, data: &Path, arguments: &[&str]) -> Process {
        self.serve_to_fault(None, data, arguments).await
    }

    /// Starts a server that dies at a fault point (`svc_base::fault`).
    pub async fn serve_to_fault(
        &self,
        fault: Option<&str>,
        data: &Path,
        arguments: &[&str],
    ) -> Process {
        let process = self.try_serve_to_fault(fault, data, arguments).await;
        process.unwrap_or_else(|said| panic!("not ready: {said}"))
    }

    /// Starts a server that dies at a fault point; returns its output if it dies before it is ready.
    pub async fn try_serve_to_fault(
        &self,
        fault: Option<&str>,
        data: &Path,
        arguments: &[&str],
    ) -> Result<Process, String> {
        let mut command = self.command();
        command.envs(fault.map(|point| ("SVC_FAULT", point)));
        Self::start(command, data, arguments).await
    }

    /// Starts a server without some variables of its environment and with others.
    pub async fn serve_with_environment(
        &self,
        with: &[(&str, &str)],
        without: &[&str],
        data: &Path,
        arguments: &[&str],
    ) -> Process {
        let mut command = self.command();
        for name in without {
            command.env_remove(name);
        }
        command.envs(with.iter().copied());
        let process = Self::start(command, data, arguments).await;
        process.unwrap_or_else(|said| panic!("not ready: {said}"))
    }

    async fn start(
        mut command: Command,
        data: &Path,
        arguments: &[&str],
    ) -> Result<Process, String> {
        command
            .env("SVC_DATA", data)
            .env("SVC_LISTEN", "127.0.0.1:0")
            .arg("serve")
            .args(arguments);
        Process::start(command).await
    }
}

/// Runs a program to its end.
pub async fn run_command(mut command: Command) -> Output {
    let run = move || command.output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    Output {
        success: output.status.success(),
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server as a process. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    address: SocketAddr,
    stdout: JoinHandle<String>,
    stderr: Arc<Mutex<String>>,
    client: Client,
}

impl Process {
    async fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (stderr, listening) = collect_output(child.stderr.take().unwrap());
        let first = move || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            (line, stdout)
        };
        let (line, mut rest) = tokio::task::spawn_blocking(first).await.unwrap();
        // A node of several may stand by first.
        let said = line.strip_prefix("ready ");
        let address = said
            .or(line.strip_prefix("standby "))
            .and_then(|url| url.strip_prefix("http://").or(url.strip_prefix("https://")))
            .and_then(|line| line.trim_end().parse().ok());
        let Some(address) = address else {
            // The process may be ending already.
            let _ = child.kill();
            let _ = child.wait();
            listening.join().unwrap();
            let said = stderr.lock().unwrap();
            return Err(format!("{line:?} {said}"));
        };
        let stdout = std::thread::spawn(move || {
            let mut all = line;
            rest.read_to_string(&mut all).unwrap();
            all
        });
        let client = crate::http_client()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(DEADLINE)
            .no_proxy()
            .build()
            .unwrap();
        Ok(Self {
            child,
            address,
            stdout,
            stderr,
            client,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns what the process has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.client.get(self.url(path)).answer().await
    }

    /// Sends a POST with a JSON body.
    pub async fn json(&self, path: &str, body: &Value) -> Answer {
        self.client.post(self.url(path)).json(body).answer().await
    }

    pub fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).unwrap();
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the process has ended; returns its status and its standard output.
    pub async fn wait_for_exit(mut self) -> (ExitStatus, String) {
        let child = &mut self.child;
        let status = wait_until("the process to end", async || child.try_wait().unwrap()).await;
        let stdout = std::mem::replace(&mut self.stdout, std::thread::spawn(String::new));
        (status, stdout.join().unwrap())
    }

    /// Kills the process with SIGKILL, as in a power cut.
    pub async fn kill(self) {
        self.signal(Signal::KILL);
        self.wait_for_exit().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects the output of a process, so that it never blocks on a full pipe.
fn collect_output(pipe: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let heard = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&heard);
    let listening = std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    });
    (heard, listening)
}
