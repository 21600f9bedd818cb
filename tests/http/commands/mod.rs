//! Operators' commands as operations of the running server: each is in effect when it is answered, and nothing is lost
//! between a command, the server and the files.

mod socket;

use std::collections::BTreeSet;

use clap::Subcommand as _;
use http::Method;
use serde_json::{Value, json};
use svc_tests::{Output, Process, ReadAnswer, wait_until};
use tempfile::TempDir;

use crate::svc;

const SOCKET: &str = "operators.sock";

/// Groups of the fault points that are tested here.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["operators"];

/// A server as a process, and commands beside it.
struct CommandFixture {
    data: TempDir,
    server: Process,
    /// The commands that were run, each as its path.
    ran: BTreeSet<String>,
}

impl CommandFixture {
    async fn start() -> Self {
        let data = TempDir::new().unwrap();
        let server = svc().serve(data.path(), &[]).await;
        let ready = async || (server.get("/readyz").await.status == 200).then_some(());
        wait_until("the guests to load", ready).await;
        let ran = BTreeSet::new();
        Self { data, server, ran }
    }

    /// Runs a command that succeeds; returns its document.
    async fn run(&mut self, arguments: &[&str]) -> Value {
        let whole = arguments.join(" ");
        let paths = operations().into_iter();
        let path = paths.filter(|path| whole == *path || whole.starts_with(&format!("{path} ")));
        self.ran.extend(path);
        let arguments = [arguments, &["--json"]].concat();
        svc().run(self.data.path(), &arguments).await.json()
    }

    /// Asks as the owner of a credential.
    async fn send_request(
        &self,
        credential: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> u16 {
        let url = self.server.url(path);
        let request = self.server.client().request(method, url);
        let request = request.bearer_auth(credential);
        let request = match body {
            Value::Null => request,
            body => request.json(body),
        };
        request.answer().await.status
    }

    async fn create_project(&self, credential: &str) -> u16 {
        let body = json!({ "name": "Shop" });
        let path = "/api/v1/projects";
        self.send_request(credential, Method::POST, path, &body)
            .await
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn every_command_is_in_effect_when_it_is_answered() {
    let mut site = CommandFixture::start().await;
    let made = site.run(&["namespace", "create", "acme"]).await;
    let first = text(&made["credential"]).to_owned();
    let named = site.run(&["namespace", "list"]).await;
    assert_eq!(named["namespaces"][0]["slug"], "acme");
    assert_eq!(site.create_project(&first).await, 201);
    assert_eq!(site.create_project(&first).await, 403);
    site.run(&["namespace", "plan", "acme", "pro"]).await;
    assert_eq!(site.create_project(&first).await, 201);

    // Tests of members show that membership counts at once.
    let nobody = [
        "workspace",
        "member",
        "add",
        "acme",
        "usr_nobody",
        "--role",
        "owner",
    ];
    let nobody = svc().run(site.data.path(), &nobody).await;
    assert!(nobody.stderr.contains("there is no user"), "{nobody:?}");
    let members = site.run(&["workspace", "member", "list", "acme"]).await;
    assert_eq!(members, json!({ "members": [] }));
    for tried in ["add", "remove"] {
        site.ran.insert(format!("workspace member {tried}"));
    }

    let key = site.run(&["key", "create", "acme"]).await;
    let second = text(&key["credential"]).to_owned();
    let projects = "/api/v1/projects";
    let send_request = async |site: &CommandFixture, with: &str| {
        let none = &Value::Null;
        site.send_request(with, Method::GET, projects, none).await
    };
    assert_eq!(send_request(&site, &second).await, 200);
    let revoke = ["key", "revoke", "acme", text(&key["key_id"])];
    site.run(&revoke).await;
    assert_eq!(send_request(&site, &second).await, 401);
    let listed = site.run(&["key", "list", "acme"]).await;
    assert_eq!(listed["keys"].as_array().unwrap().len(), 2);
    assert!(listed["keys"][1]["revoked_at"].is_string());

    let listed = site.run(&["project", "list"]).await;
    let project = text(&listed["projects"][0]["id"]).to_owned();
    let body = json!({ "type": "html", "content": "<p>Hello", "requested_slug": "page" });
    let path = format!("{projects}/{project}/frontends");
    let published = site.send_request(&first, Method::POST, &path, &body).await;
    assert_eq!(published, 201);
    site.server.get("/page").await.expect(200);
    site.run(&["deployment", "disable", "page"]).await;
    site.server.get("/page").await.expect(403);
    let listed = site.run(&["deployment", "list", "--disabled"]).await;
    assert_eq!(listed["deployments"][0]["slug"], "page");
    site.run(&["deployment", "enable", "page"]).await;
    site.server.get("/page").await.expect(200);
    let digest = svc::content::Digest::of(b"<p>Hello").to_string();
    site.run(&["content", "block", &digest]).await;
    site.server.get("/page").await.expect(403);
    let blocked = site.run(&["content", "blocked"]).await;
    assert_eq!(blocked["blocked"][0]["sha256"], digest);
    let listed = site.run(&["content", "list", &project]).await;
    let page =
        json!({ "slug": "page", "path": null, "sha256": digest, "bytes": null, "blocked": true });
    assert_eq!(listed["content"], json!([page]));
    site.run(&["content", "unblock", &digest]).await;
    site.server.get("/page").await.expect(200);
    let shown = site.run(&["deployment", "show", "page"]).await;
    assert!(shown["page_bytes"].as_u64() > Some(0), "{shown}");
    let shown = site.run(&["project", "show", &project]).await;
    assert_eq!(shown["members"][0]["slug"], "page");

    let report = json!({ "slug": "page", "reason": "other" });
    site.server
        .json("/api/v1/reports", &report)
        .await
        .expect(202);
    let open = site.run(&["report", "list"]).await;
    let report = text(&open["reports"][0]["id"]).to_owned();
    site.run(&["report", "close", &report]).await;
    let open = site.run(&["report", "list"]).await;
    assert_eq!(open, json!({ "reports": [] }));

    let rebuilt = site.run(&["payments", "rebuild", &project]).await;
    assert_eq!(rebuilt["sessions"], 0, "{rebuilt}");
    let events = site.run(&["payments", "events", &project]).await;
    assert_eq!(events, json!({ "events": [] }));
    let visitors = site.run(&["visitors", "list", &project]).await;
    assert_eq!(visitors, json!({ "visitors": [] }));
    // Tests of visitors show that erasure is immediate.
    let forget = ["visitors", "forget", &project, "usr_nobody"];
    let nobody = svc().run(site.data.path(), &forget).await;
    assert!(nobody.stderr.contains("has no visitor"), "{nobody:?}");
    site.ran.insert("visitors forget".to_owned());
    let audit = site.run(&["audit", "acme"]).await;
    let did = |action: &str| {
        let mut entries = audit["entries"].as_array().unwrap().iter();
        let found = entries.find(|entry| entry["action"] == action);
        found.unwrap_or_else(|| panic!("{action} in {audit}"))
    };
    for action in [
        "workspace.create",
        "deployment.disable",
        "key.revoke",
        "payments.rebuild",
    ] {
        assert_eq!(did(action)["principal"], "operator");
    }
    assert_ne!(did("project.create")["principal"], "operator");

    let link = site.run(&["console", "acme"]).await;
    let (url, _) = text(&link["url"]).split_once("/login#").unwrap();
    assert!(url.starts_with("http://console.localhost:"), "{link}");
    let deleted = site.run(&["namespace", "delete", "acme"]).await;
    assert_eq!(
        (&deleted["projects"], &deleted["server_running"]),
        (&json!(2), &json!(true))
    );
    site.server.get("/page").await.expect(404);
    assert_eq!(send_request(&site, &first).await, 401);
    let named = site.run(&["namespace", "list"]).await;
    assert_eq!(named, json!({ "namespaces": [] }));

    assert_eq!(site.ran, operations(), "each command is tried here");
    let log = site.server.stderr();
    for said in [
        "namespace create acme --plan free",
        "deployment disable page",
        "namespace delete acme",
    ] {
        assert!(log.contains(said), "{said} in {log}");
    }
    assert!(!log.contains("deployment list"), "looking is not doing");
    assert!(!log.contains(&first) && !log.contains(&second));
}

/// The commands that are operations, each as its path.
fn operations() -> BTreeSet<String> {
    let all = svc::operators::OperatorCommand::augment_subcommands(clap::Command::new("svc"));
    let projects = ["project list", "project show"].map(str::to_owned);
    let paths = all.get_subcommands().flat_map(command_paths);
    paths.chain(projects).collect()
}

/// The paths of a command: its own, or those of what is below it.
fn command_paths(command: &clap::Command) -> Vec<String> {
    let name = command.get_name();
    let below = command.get_subcommands();
    let below = below.filter(|below| below.get_name() != "help");
    let below: Vec<_> = below.flat_map(command_paths).collect();
    match below.is_empty() {
        true => vec![name.to_owned()],
        false => below.iter().map(|path| format!("{name} {path}")).collect(),
    }
}

/// A server that dies behind an operation, before it answers.
#[tokio::test]
async fn a_server_that_dies_before_it_answers_has_done_it() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let body = json!({ "content": "x", "name": "page" });
    server.json("/api/v1/deploy", &body).await.expect(201);
    server.kill().await;
    let dying = svc()
        .serve_to_fault(Some("operators.done"), data.path(), &[])
        .await;
    let disabled = svc()
        .run(data.path(), &["deployment", "disable", "page"])
        .await;
    assert!(!disabled.success);
    assert!(
        disabled.stderr.contains("ended before it answered"),
        "{disabled:?}"
    );
    let (status, _) = dying.wait_for_exit().await;
    assert!(!status.success());
    let server = svc().serve(data.path(), &[]).await;
    server.get("/page").await.expect(403);
}

#[tokio::test]
async fn commands_without_a_server_wait_for_each_other_and_are_told_to_the_next() {
    let data = TempDir::new().unwrap();
    let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
    run(&["namespace", "create", "first"]).await;
    let names = ["a", "b", "c", "d", "e"];
    let made = names.map(|name| {
        let data = data.path().to_owned();
        tokio::spawn(async move { svc().run(&data, &["namespace", "create", name]).await })
    });
    for made in made {
        let made: Output = made.await.unwrap();
        assert!(made.success, "{made:?}");
    }
    let listed = run(&["namespace", "list", "--json"]).await.json();
    assert_eq!(listed["namespaces"].as_array().unwrap().len(), 6);
    let server = svc().serve(data.path(), &[]).await;
    let said = async || {
        let log = server.stderr();
        let all = names
            .iter()
            .all(|name| log.contains(&format!("namespace create {name} ")));
        all.then_some(())
    };
    wait_until("the log to name each command", said).await;
    server.kill().await;
    // Each was said once.
    let server = svc().serve(data.path(), &[]).await;
    server.get("/healthz").await.expect(200);
    run(&["namespace", "create", "last"]).await;
    let said = async || server.stderr().contains("create last").then_some(());
    wait_until("the last command", said).await;
    assert!(!server.stderr().contains("namespace create a "));
}
