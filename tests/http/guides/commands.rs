//! Commands of the guides: each is run as it stands, or has its reason in [`UNTESTED_COMMANDS`].

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::StreamExt as _;
use svc_tests::guests::{RendererBehaviour, renderer};
use svc_tests::{AUDIENCE, Process, ReadAnswer, TokenIssuer, run_command};
use tempfile::TempDir;

use super::{Document, documents};
use crate::svc;

/// Commands that no test can run, each with the reason.
const UNTESTED_COMMANDS: [(&str, &str); 25] = [
    (
        "export SVC_SERVER=http://localhost:43411 SVC_CREDENTIAL=svc_…\nsvc backend query 'SELECT * FROM entries'\n",
        "what `svc dev` prints, with a port and a credential of its own; `client/dev.rs` runs it",
    ),
    (
        "svc frontend diff notes notes.md\nsvc pull                # take what the server has\nsvc apply --force       # or have the folder win, in the parts that were named\n",
        "a choice of two; `client/three_states.rs` makes both",
    ),
    (
        "svc domain verify www.example.com\n",
        "needs a record in public DNS; `tests/http/domains` has a server of its own",
    ),
    (
        "sudo apt install postgresql caddy curl\ncargo build --profile dist\nPATH=$PWD/target/dist:$PATH\n",
        "changes the machine, and builds for minutes; a debug build is what is tested",
    ),
    (
        "sudo apt install ./svc_0.1.0_amd64.deb\nsudo systemctl stop svc\nsudo editor /etc/svc/svc.toml\n",
        "changes the machine; `packages.rs` looks into the package",
    ),
    (
        "sudo -u svc svc cluster found --config /etc/svc/svc.toml\nsudo systemctl start svc\n",
        "needs PostgreSQL with its standbys; `tests/cluster` founds and serves over one",
    ),
    (
        "sudo rm -r /var/lib/svc\nsudo systemctl start svc\n",
        "changes the machine; `tests/cluster` starts nodes with empty disks",
    ),
    (
        "sudo -u svc svc node list --data /var/lib/svc\n",
        "needs the package's user, and a running node; `tests/cluster` lists nodes",
    ),
    (
        "svc healthcheck --data /var/lib/svc\nsvc node list --data /var/lib/svc\nsvc promote --data /var/lib/svc\n",
        "needs a running node; `tests/cluster` runs all of them",
    ),
    (
        "svc restore --from s3://my-pages/cluster --ledger postgresql://svc@pg1,pg2,pg3/svc --data /var/lib/svc-restored\n",
        "needs a bucket and a ledger; `tests/cluster` restores from both",
    ),
    (
        "packaging/try-cluster target/dist/svc\n",
        "runs until it is told to end, and needs a build",
    ),
    (
        "SSL_CERT_FILE=cert.pem svc login https://localhost:8443\n",
        "needs the server of the command before it; tests/http/https/own_certificate.rs runs both",
    ),
    (
        "cargo run --release -- serve --dev\n",
        "builds for minutes; the harness starts the same command, and `packaging/try-source` this one",
    ),
    (
        "echo '# Hello' | target/release/svc publish -\n",
        "needs the build before it; `packaging/try-source` runs both on a clean machine",
    ),
    ("cargo test\n", "is what runs this"),
    (
        "cargo build --profile dist\n",
        "builds for minutes; a debug build is what is tested",
    ),
    (
        "sudo apt install ./svc_0.1.0_amd64.deb\n",
        "changes the machine; `packages.rs` looks into the package",
    ),
    (
        "sudo -u svc svc namespace create acme --data /var/lib/svc\n",
        "needs the package's user; the same command is run without it",
    ),
    (
        "podman run -d --name svc -p 127.0.0.1:8080:8080 -v svc:/data localhost/svc\npodman exec svc /svc namespace create acme\n",
        "needs a container engine; `packaging/image` tries the image that it builds",
    ),
    (
        "systemctl enable --now svc-backup.timer\n",
        "changes the machine; `packages.rs` has the unit verified",
    ),
    (
        "aws s3 sync /var/lib/svc/content s3://my-pages/svc\n",
        "is another program, with a bucket of its own; `tests/s3` puts the same objects there",
    ),
    (
        "svc serve --config /etc/svc.toml\n",
        "never ends; the harness starts the same command",
    ),
    (
        "svc serve --https --base-url https://share.example.com --data /var/lib/svc\n",
        "needs a public name; tests/http/https/acme.rs has the same with a test server of Let's Encrypt",
    ),
    (
        include_str!("../../../host/assets/connect/claude-code.sh"),
        "is another program's; the landing page shows the same",
    ),
    (
        include_str!("../../../host/assets/connect/owner-claude-code.sh"),
        "is another program's; the landing page shows the same",
    ),
];

/// The guide for people who have a server elsewhere, and no data directory.
const CLIENT: &str = "docs/client.md";

/// Node.js, where it is not installed.
const NO_NODE: &str =
    "[ -n \"${SVC_TEST_EVERYTHING-}\" ] || command -v node > /dev/null || node() { :; }\n";

/// Files that a reader is taken to have.
const FILES: [(&str, &str); 2] = [
    ("notes.md", "# Notes\n\nOf today.\n"),
    ("main.rs", "fn main() {}\n"),
];

/// Where a document is tried out: a server of its own, and a directory with the files that a reader has.
struct GuideRunner {
    here: TempDir,
    data: TempDir,
    port: u16,
    credential: String,
    /// Issuer of a document that has users.
    users: Option<Users>,
}

/// An issuer, the token of one of its people, and the id of another.
struct Users {
    _issuer: TokenIssuer,
    token: String,
    colleague: String,
}

impl GuideRunner {
    async fn start(has_users: bool) -> (Self, Process) {
        let (here, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (name, text) in FILES {
            std::fs::write(here.path().join(name), text).unwrap();
        }
        let component = renderer("(new)", RendererBehaviour::Good);
        std::fs::write(here.path().join("new.wasm"), component).unwrap();
        let commands = here.path().join("bin");
        std::fs::create_dir(&commands).unwrap();
        let program = svc().command().get_program().to_owned();
        std::os::unix::fs::symlink(program, commands.join("svc")).unwrap();
        // A document may show more in a second than a person types in a minute.
        let settings = here.path().join("limits.toml");
        let limits = "[limits]\ndeploy_burst = 1000\nowner_burst = 1000\nop_burst = 1000\n";
        std::fs::write(&settings, limits).unwrap();
        let issuer = match has_users {
            true => Some(TokenIssuer::start().await),
            false => None,
        };
        if let Some(issuer) = &issuer {
            let oauth = format!(
                "[oauth]\nissuer = '{}'\naudience = '{AUDIENCE}'\n",
                issuer.url()
            );
            std::fs::write(&settings, format!("{limits}{oauth}")).unwrap();
        }
        let settings = settings.to_str().unwrap();
        let server = svc()
            .serve(data.path(), &["--config", settings, "--dev"])
            .await;
        let users = match issuer {
            Some(issuer) => Some(Users::create(issuer, &server).await),
            None => None,
        };
        let pro = ["namespace", "plan", "dev", "pro"];
        assert!(svc().run(data.path(), &pro).await.success);
        let make = ["key", "create", "dev", "--json"];
        let made = svc().run(data.path(), &make).await;
        assert!(made.success, "{made:?}");
        let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        let trial = Self {
            here,
            data,
            port: server.address().port(),
            credential: made["credential"].as_str().unwrap().to_owned(),
            users,
        };
        (trial, server)
    }

    /// Runs a script of a document; returns what it printed, or what went wrong.
    async fn run(&self, document: &Document, script: &str) -> Result<String, String> {
        let (here, data) = (self.here.path(), self.data.path());
        let backup = here.join("backup");
        let script = script
            .replace("localhost:8080", &format!("localhost:{}", self.port))
            .replace("/var/lib/svc", data.to_str().unwrap())
            .replace("/backup/svc", backup.to_str().unwrap());
        // An answer that refuses fails the script, whether the document says `-f` or not.
        let script = format!("curl() {{ command curl -sSf \"$@\"; }}\n{NO_NODE}set -x\n{script}");
        let path = format!(
            "{}:{}",
            here.join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &script])
            .current_dir(here)
            .envs(
                svc()
                    .command()
                    .get_envs()
                    .filter_map(|(k, v)| Some((k, v?))),
            )
            .env("PATH", path)
            .env("HOME", here)
            .env("XDG_CONFIG_HOME", here.join("config"))
            .env("SVC_SERVER", format!("http://localhost:{}", self.port))
            .env("SVC_CREDENTIAL", &self.credential)
            .envs(
                self.users.iter().flat_map(|users| {
                    [("SVC_TOKEN", &users.token), ("COLLEAGUE", &users.colleague)]
                }),
            )
            .stdin(Stdio::null());
        if document.path != CLIENT {
            bash.env("SVC_DATA", data);
        }
        let output = run_command(bash).await;
        match output.success {
            true => Ok(output.stdout),
            false => Err(format!("{}\n{}", output.stdout, output.stderr)),
        }
    }
}

impl Users {
    async fn create(issuer: TokenIssuer, server: &Process) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_secs()).unwrap();
        let token = |name: &str| issuer.sign(&issuer.claims_at(name, now));
        let (token, other) = (token("alice"), token("bob"));
        let me = server.client().get(server.url("/api/v1/me"));
        let me = me.bearer_auth(other).answer().await.expect(200).json();
        Self {
            _issuer: issuer,
            token,
            colleague: me["user_id"].as_str().unwrap().to_owned(),
        }
    }
}

/// Runs a document's scripts; returns what is wrong with them.
async fn try_out(document: &Document) -> Option<String> {
    let script = document.script();
    if script.is_empty() {
        return None;
    }
    let (trial, server) = GuideRunner::start(script.contains("$SVC_TOKEN")).await;
    let mut ran = trial.run(document, &script).await;
    server.kill().await;
    if let Ok(printed) = &mut ran {
        let after = trial
            .run(document, &document.text_of_blocks("sh stopped"))
            .await;
        match after {
            Ok(after) => printed.push_str(&after),
            Err(error) => ran = Err(error),
        }
    }
    let printed = match ran {
        Ok(printed) => printed,
        Err(error) => return Some(format!("{}: {error}", document.path)),
    };
    let missing = document
        .expected_texts()
        .into_iter()
        .find(|text| !printed.contains(text));
    missing.map(|text| format!("{}: `{text}` in:\n{printed}", document.path))
}

#[tokio::test]
async fn every_command_works_as_it_stands() {
    let documents = documents();
    let tried = futures_util::stream::iter(&documents)
        .map(try_out)
        .buffer_unordered(2);
    let wrong: Vec<_> = tried.filter_map(async |wrong| wrong).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn who_has_followed_the_readme_can_go_on_with_the_clients_guide() {
    let documents = documents();
    let named = |path: &str| documents.iter().find(|one| one.path == path).unwrap();
    let (trial, server) = GuideRunner::start(false).await;
    for document in [named("README.md"), named(CLIENT)] {
        let ran = trial.run(document, &document.script()).await;
        if let Err(error) = ran {
            panic!("{}: {error}", document.path);
        }
    }
    server.kill().await;
}

#[test]
fn a_command_that_is_not_run_has_a_reason() {
    let mut shown = Vec::new();
    for document in documents() {
        for block in document.blocks() {
            match block.info {
                "console" => shown.push(block.text.clone()),
                "sh" | "sh lasting" | "sh stopped" | "sh cluster" | "json" | "toml" | "html"
                | "js" | "sql" | "yaml" | "mermaid" | "caddy" | "nginx" | "" => {}
                other => panic!("{}: a block of `{other}`", document.path),
            }
        }
    }
    for text in &shown {
        assert!(
            UNTESTED_COMMANDS.iter().any(|(known, _)| known == text),
            "`sh` has it run, and SHOWN says why it cannot be:\n{text}"
        );
    }
    for (known, _) in UNTESTED_COMMANDS {
        assert!(shown.iter().any(|text| text == known), "not shown: {known}");
    }
}
