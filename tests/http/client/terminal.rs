//! Commands at a terminal: what they ask there, and what a person's answers do. The terminal is `script`'s, of util-linux.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;
use svc_tests::wait_until;

use super::ClientFixture;
use crate::owner::text;

/// A command at a pseudo-terminal, with its input and its screen.
pub(super) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Starts a command there.
    pub(super) fn start(command: &Command) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words
            .map(|word| shell_quoted(word.to_str().unwrap()))
            .collect();
        // A shell stands between, and is not to be the one that ends by Ctrl-C.
        let line = format!("exec {}", words.join(" "));
        let mut script = Command::new("/usr/bin/env");
        script
            .args(["--default-signal=INT", "script", "--quiet", "--return"])
            .args(["--flush", "--command", &line, "/dev/null"])
            .env_clear()
            .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .env("PATH", "/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .current_dir(command.get_current_dir().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = script.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut shown = child.stdout.take().unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let written = Arc::clone(&screen);
        // A prompt is no whole line.
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]);
                written.lock().unwrap().push_str(&text);
            }
        });
        Self {
            child,
            keys,
            screen,
        }
    }

    pub(super) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until the screen shows something.
    pub(super) async fn wait_for_text(&self, text: &str) {
        let seen = async || self.screen().contains(text).then_some(());
        wait_until(text, seen).await;
    }

    pub(super) fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until the terminal no longer echoes input.
    async fn wait_for_hidden_input(&self) {
        let hidden = async || {
            let id = self.child.id();
            let children =
                std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
            let command = children.split_whitespace().next()?.to_owned();
            let terminal = std::fs::read_link(format!("/proc/{command}/fd/0")).ok()?;
            let settings = Command::new("stty").arg("-F").arg(terminal).output().ok()?;
            let settings = String::from_utf8_lossy(&settings.stdout).into_owned();
            settings
                .split_whitespace()
                .any(|one| one == "-echo")
                .then_some(())
        };
        wait_until("what is typed to be hidden", hidden).await;
    }

    /// Waits until it has ended; answers its number, as a shell would have it, and the whole screen.
    pub(super) async fn wait_for_exit(mut self) -> (i32, String) {
        let child = &mut self.child;
        let ended = wait_until("the end", async || child.try_wait().unwrap()).await;
        let signal = ended.signal().map(|signal| 128 + signal);
        (ended.code().or(signal).unwrap(), self.screen())
    }

    /// Answers one question whose answer is hidden, and waits for the end.
    async fn answer_hidden_question(self, question: &str, keys: &str) -> (i32, String) {
        self.wait_for_text(question).await;
        self.wait_for_hidden_input().await;
        self.answer_question(question, keys).await
    }

    /// Answers one question and waits for the end.
    pub(super) async fn answer_question(mut self, question: &str, keys: &str) -> (i32, String) {
        self.wait_for_text(question).await;
        self.type_keys(keys);
        self.wait_for_exit().await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A word of the shell.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[tokio::test]
async fn a_credential_is_typed_and_not_shown() {
    let fixture = ClientFixture::new().await;
    let login = || Terminal::start(&fixture.command_without_credential(&["login", &fixture.url()]));
    let profiles = fixture.home.path().join("svc/profiles.toml");
    let wrong = login()
        .answer_hidden_question("credential: ", "svc_wrong\r")
        .await;
    assert_eq!(wrong.0, 3, "{wrong:?}");
    assert!(wrong.1.contains("Nothing was kept") && !wrong.1.contains("svc_wrong"));
    let empty = login().answer_hidden_question("credential: ", "\r").await;
    assert_eq!(empty.0, 1, "{empty:?}");
    let interrupted = login()
        .answer_hidden_question("credential: ", "\u{3}")
        .await;
    assert_eq!(interrupted.0, 130, "{interrupted:?}");
    assert!(!profiles.exists());

    let typed = format!("{}\r", fixture.credential);
    let (code, screen) = login().answer_hidden_question("credential: ", &typed).await;
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("logged in to"), "{screen}");
    assert!(!screen.contains(&fixture.credential), "{screen}");
    let kept = std::fs::read_to_string(&profiles).unwrap();
    assert!(kept.contains(&fixture.credential));
    let mode = std::fs::metadata(&profiles).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[tokio::test]
async fn a_password_and_a_token_are_typed_and_not_shown() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# Secret");
    let publish = fixture.command(&["publish", "a.md", "--name", "secret", "--password"]);
    let publish = Terminal::start(&publish);
    let (code, screen) = publish
        .answer_hidden_question("password: ", "opensesame\r")
        .await;
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains("opensesame"), "{screen}");
    let unlock = json!({ "password": "opensesame" });
    let unlocked = fixture.server.json("/api/v1/auth/secret", &unlock).await;
    unlocked.expect(200);

    let made = fixture.json(&["publish", "a.md", "--name", "gone"]).await;
    let share = &made["published"][0];
    let (id, token) = (text(&share["id"]), text(&share["delete_token"]));
    let unpublish = Terminal::start(&fixture.command(&["unpublish", &id]));
    let (code, screen) = unpublish
        .answer_hidden_question("token", &format!("{token}\r"))
        .await;
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains(&token), "{screen}");
    fixture.server.get("/gone").await.expect(404);
}

/// Everything that asks first: with `n` and with Ctrl-C nothing happens, with `y` it does.
#[tokio::test]
async fn what_cannot_be_undone_asks_first() {
    let fixture = ClientFixture::without_owner_rate_limit().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    fixture.write(
        "svc.toml",
        "project = \"Shop\"\n[pages]\nshop = \"shop.md\"\n",
    );
    fixture.write("shop.md", "# Shop");
    fixture.write("notes.sql", "CREATE TABLE notes (text TEXT);");
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    let moments = fixture.json(&["backend", "history", "--limit", "1"]).await;
    let at = text(&moments["moments"][0]["at"]);
    // The state that each changes, and what is left of it.
    let state = async || {
        let projects = fixture.json(&["project", "list"]).await["projects"].clone();
        if projects == json!([]) {
            return vec!["no project".to_owned()];
        }
        let pages = fixture
            .run_for_stdout(&["frontend", "list", "--json"])
            .await;
        let backend = fixture.run(&["backend", "show", "--json"]).await;
        let backend = format!("{:?} {}", backend.code, backend.stdout);
        assert!(backend.starts_with("Some(0)") || backend.starts_with("Some(4)"));
        vec![pages, backend, fixture.read("shop.md")]
    };
    for arguments in [
        &["apply"][..],
        &["pull"],
        &["backend", "restore", &at],
        &["backend", "delete"],
        &["frontend", "delete", "shop"],
        &["project", "delete", "Shop"],
    ] {
        if arguments == ["pull"] {
            fixture.write("shop.md", "# Changed here");
        }
        let before = state().await;
        for (keys, number) in [("n\r", 8), ("\r", 8), ("\u{3}", 130)] {
            let asked = Terminal::start(&fixture.command(arguments));
            let (code, screen) = asked.answer_question("[y/N] ", keys).await;
            assert_eq!(code, number, "{arguments:?} {keys:?}: {screen}");
            assert_eq!(state().await, before, "{arguments:?} {keys:?}");
        }
        let asked = Terminal::start(&fixture.command(arguments));
        let (code, screen) = asked.answer_question("[y/N] ", "y\r").await;
        assert_eq!(code, 0, "{arguments:?}: {screen}");
        assert_ne!(state().await, before, "{arguments:?}");
        let question = screen.lines().find(|line| line.contains("[y/N]")).unwrap();
        let at = format!(
            "(project `Shop`, workspace `acme`, server {})",
            fixture.url()
        );
        assert!(question.contains(&at), "{arguments:?}: {question}");
    }
}

/// A source is its author's: a terminal is shown what would steer it, a file or a program gets the exact bytes.
#[tokio::test]
async fn a_source_steers_no_terminal() {
    let fixture = ClientFixture::new().await;
    let source = "# A\n\u{1b}[2J\u{9b}31m\u{202e}b\r\n";
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    fixture.write("a.md", source);
    fixture
        .run_for_stdout(&["publish", "a.md", "--project", "Shop"])
        .await;
    assert_eq!(
        fixture.run_for_stdout(&["frontend", "content", "a"]).await,
        source
    );
    for arguments in [
        &["frontend", "content", "a"][..],
        &["frontend", "content", "a", "--json"],
    ] {
        let shown = Terminal::start(&fixture.command(arguments));
        let (code, screen) = shown.wait_for_exit().await;
        assert_eq!(code, 0, "{screen}");
        assert!(
            screen.contains("[2J") && !screen.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{screen:?}"
        );
    }
    fixture
        .run_for_stdout(&["frontend", "content", "a", "-o", "copy.md"])
        .await;
    assert_eq!(fixture.read("copy.md"), source);
    fixture.write("notes.sql", "CREATE TABLE notes (text TEXT);");
    fixture
        .run_for_stdout(&["backend", "create", "notes.sql"])
        .await;
    let export = Terminal::start(&fixture.command(&["backend", "export", "-o", "-"]));
    let (code, screen) = export.wait_for_exit().await;
    assert!(
        code == 1 && screen.contains("nothing for a terminal"),
        "{screen:?}"
    );
}

#[tokio::test]
async fn an_empty_folder_is_offered_a_beginning() {
    let fixture = ClientFixture::new().await;
    let dev = Terminal::start(&fixture.command_without_credential(&["dev"]));
    let (code, screen) = dev.answer_question("[y/N] ", "n\r").await;
    assert_eq!(code, 4, "{screen}");
    assert!(!fixture.path_of("svc.toml").exists());
    let mut dev = Terminal::start(&fixture.command_without_credential(&["dev"]));
    dev.wait_for_text("[y/N] ").await;
    dev.type_keys("y\r");
    dev.wait_for_text("/home").await;
    dev.type_keys("\u{3}");
    let (_, screen) = dev.wait_for_exit().await;
    assert!(screen.contains("wrote svc.toml"), "{screen}");
}

/// A new project is made in the caller's workspace, which nothing else names.
#[tokio::test]
async fn the_question_for_a_new_project_names_its_workspace() {
    let fixture = ClientFixture::new().await;
    fixture.write(
        "svc.toml",
        "project = \"Shop\"\n[pages]\nshop = \"shop.md\"\n",
    );
    fixture.write("shop.md", "# Shop");
    let asked = Terminal::start(&fixture.command(&["apply"]));
    let (code, screen) = asked.answer_question("[y/N] ", "n\r").await;
    assert_eq!(code, 8, "{screen}");
    let question: String = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        question.contains("(project `Shop`, workspace `acme`, server http"),
        "{question}"
    );
}
