//! The client's commands as processes, against the real server as a process of its own.

mod activity;
mod all_commands;
mod apply;
mod calls;
mod concurrent_changes;
mod data;
mod dev;
mod dev_data;
mod document;
mod environments;
mod failures;
mod folder_domains;
mod folder_prices;
mod histories;
mod hostile;
mod init;
mod loads;
mod pages;
mod past;
mod prices;
mod publish;
mod session;
mod site_folders;
mod terminal;
mod three_states;
mod types;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use svc_tests::{Output, Process, run_command, wait_until};
use tempfile::TempDir;

use crate::owner::text;
use crate::svc;

/// A user at a shell: a server, a credential for it, and a folder to work in.
struct ClientFixture {
    server: Process,
    credential: String,
    data: TempDir,
    home: TempDir,
    folder: TempDir,
}

impl ClientFixture {
    async fn new() -> Self {
        Self::with_server_options(&[]).await
    }

    /// Starts a server with these options.
    async fn with_server_options(options: &[&str]) -> Self {
        let data = TempDir::new().unwrap();
        let make = ["namespace", "create", "acme", "--plan", "pro", "--json"];
        let made = svc().run(data.path(), &make).await.json();
        Self {
            server: svc().serve(data.path(), options).await,
            credential: text(&made["credential"]),
            data,
            home: TempDir::new().unwrap(),
            folder: TempDir::new().unwrap(),
        }
    }

    /// Starts a server whose owner has no rate limit to speak of.
    async fn without_owner_rate_limit() -> Self {
        // Read at the start alone.
        let settings = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(settings.path(), "[limits]\nowner_burst = 100000\n").unwrap();
        Self::with_server_options(&["--config", settings.path().to_str().unwrap()]).await
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A command without a server and without a credential in its environment.
    fn command_without_credential(&self, arguments: &[&str]) -> Command {
        let mut command = svc().command();
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_CONFIG_HOME", self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// A command of the owner.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_without_credential(arguments);
        command.env("SVC_SERVER", self.url());
        command.env("SVC_CREDENTIAL", &self.credential);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        run_command(self.command(arguments)).await
    }

    /// Runs a command that succeeds; returns its standard output.
    async fn run_for_stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.success, "{arguments:?}: {output:?}");
        output.stdout
    }

    /// Runs a command that succeeds; returns its JSON document.
    async fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        self.run(&arguments).await.json()
    }

    /// Runs a command that exits with a code; returns its standard error.
    async fn run_for_failure(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        output.stderr
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path_of(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path_of(name)).unwrap()
    }

    /// The source that a slug has.
    async fn fetch_source(&self, slug: &str) -> String {
        let answer = self.server.get(&format!("/{slug}/raw")).await.expect(200);
        answer.text().to_owned()
    }
}

/// Runs a command to its end, with a text on its standard input.
pub(crate) async fn run_with_input(mut command: Command, input: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let input = input.to_owned();
    let run = move || {
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A command that reads no input may have ended.
        let _ = pipe.write_all(input.as_bytes());
        drop(pipe);
        child.wait_with_output().unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    Output {
        success: output.status.success(),
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that runs until it is stopped. Dropping it kills the process.
struct RunningCommand {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl RunningCommand {
    /// Starts a command that reacts to Ctrl-C, which background jobs of a shell ignore.
    fn start(command: &Command) -> Self {
        let mut heard = Command::new("/usr/bin/env");
        heard
            .arg("--default-signal=INT")
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => heard.env(name, value),
                None => heard.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            heard.current_dir(folder);
        }
        let mut child = heard.spawn().unwrap();
        Self {
            stdout: collect_output(child.stdout.take().unwrap()),
            stderr: collect_output(child.stderr.take().unwrap()),
            child,
        }
    }

    fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits for so many lines on standard output; returns all of them.
    async fn wait_for_lines(&self, count: usize) -> Vec<String> {
        wait_until("lines of a command", async || {
            let lines: Vec<_> = self.stdout().lines().map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        })
        .await
    }

    /// Waits until standard error contains a text.
    async fn wait_for_stderr(&self, text: &str) {
        let heard = async || self.stderr().contains(text).then_some(());
        wait_until(text, heard).await;
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn wait_for_exit(&mut self) -> std::process::ExitStatus {
        let child = &mut self.child;
        wait_until("a command to end", async || child.try_wait().unwrap()).await
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect_output(pipe: impl std::io::Read + Send + 'static) -> Arc<Mutex<String>> {
    use std::io::BufRead as _;
    let heard = Arc::new(Mutex::new(String::new()));
    let said = Arc::clone(&heard);
    std::thread::spawn(move || {
        for line in std::io::BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    });
    heard
}

/// The names of the files below a folder, sorted.
fn list_files(folder: &Path) -> Vec<String> {
    svc_tests::disk::names(folder)
}
