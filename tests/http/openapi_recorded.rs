//! Examples of the description, recorded: a server is walked from a share to a rollback, and what it was asked and answered
//! is what `host/src/openapi/examples.json` has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use svc_tests::browser::{Browser, location};
use svc_tests::{Ask, NOW, TestServer};

use crate::account::Owner;
use crate::openapi_people;
use crate::payments::provider::{self as till, Provider};
use crate::visitors::place::provider;
use crate::visitors::stub::Stub;

/// The server that the examples are from.
pub(crate) const BASE_URL: &str = "https://svc.example";
/// Prefix of the ids in the examples, in place of random ones.
const ID: &str = "01a1ff0b-0540-7000-8000-";

/// By operation and part, request or answer: the examples by their names.
pub(crate) type Examples = BTreeMap<String, BTreeMap<&'static str, BTreeMap<String, Value>>>;

/// A server, its owner, and what was recorded.
struct Recorder {
    server: TestServer,
    owner: Owner,
    examples: Examples,
}

impl Recorder {
    async fn new() -> Self {
        let issuer = Stub::start().await;
        // Examples take longer than a token holds.
        issuer.change(|inner| inner.claims = json!({ "exp": NOW.0 / 1000 + 86_400 }));
        let stripe = Provider::start().await.settings();
        let server = TestServer::builder().settings(|settings| {
            settings.base_url = Some(BASE_URL.parse().unwrap());
            settings.sites_domain = Some("sites.example".to_owned());
            settings.providers = vec![provider("acme", &issuer)];
            settings.stripe = Some(stripe);
        });
        let server = server.start().await;
        let owner = Owner::new(&server, "acme").await;
        Self {
            server,
            owner,
            examples: Examples::new(),
        }
    }

    fn record(&mut self, operation: &str, part: &'static str, name: &str, value: &Value) {
        let examples = self.examples.entry(operation.to_owned()).or_default();
        let known = examples.entry(part).or_default();
        known.insert(name.to_owned(), value.clone());
    }

    /// Asks a few seconds after what was asked before, as people do; answers the document.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        self.server.advance(7);
        let request = self.owner.request(&self.server, method, path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.answer().await;
        assert!(answer.status < 300, "{path}: {}", answer.text());
        answer.json()
    }

    /// Records what is asked and what is answered.
    async fn both(&mut self, example: (&str, &str), to: (Method, &str), body: Value) -> Value {
        self.record(example.0, "request", example.1, &body);
        self.answer(example, to, Some(body)).await
    }

    /// Records what is answered.
    async fn answer(
        &mut self,
        (operation, name): (&str, &str),
        (method, path): (Method, &str),
        body: Option<Value>,
    ) -> Value {
        let answer = self.ask(method, path, body.as_ref()).await;
        self.record(operation, "answer", name, &answer);
        answer
    }

    async fn share(&mut self) {
        let post = Method::POST;
        let share = json!({
            "content": "# Minutes\n\n- [x] ship it\n", "type": "markdown", "name": "minutes", "title": "Minutes",
            "password": "tea-at-five",
        });
        let to = (post.clone(), "/api/v1/deploy");
        self.both(("deploy", "markdown"), to, share).await;
        let body = json!({ "password": "tea-at-five" });
        let to = (post.clone(), "/api/v1/auth/minutes");
        self.both(("unlock", "password"), to, body).await;
        let report = json!({
            "slug": "minutes", "reason": "phishing", "details": "It asks for the password of a bank.", "contact": "jo@example.org",
        });
        let to = (post.clone(), "/api/v1/reports");
        self.both(("report", "phishing"), to, report).await;
        let page = json!({ "content": "Hello <b>there</b>", "type": "html", "title": "Hello" });
        let to = (post.clone(), "/_svc/preview");
        self.both(("preview_share", "html"), to, page).await;
        let visits = r#"[{"day": "Monday", "visits": 12}, {"day": "Tuesday", "visits": 7}]"#;
        let data = json!({ "content": visits, "type": "json", "name": "visits" });
        self.ask(post, "/api/v1/deploy", Some(&data)).await;
        let to = (Method::GET, "/visits/raw");
        self.answer(("raw", "source"), to, None).await;
        for (example, path) in [
            (("deploy_file", "file"), "notes.md?name=notes-of-today"),
            (("deploy_text", "text"), "?type=markdown&name=words"),
        ] {
            self.server.advance(7);
            let path = format!("/api/v1/deploy/{path}");
            let request = self.server.request(Method::PUT, &path);
            let request = request.header("accept", "application/json");
            let answer = request.body("# Notes").answer().await.expect(201);
            self.record(example.0, "answer", example.1, &answer.json());
        }
    }

    /// Has a visitor sign in to a page, and records what is said of visitors.
    async fn visitors(&mut self, project: &str, slug: &str) {
        let origin = self.ask(Method::GET, project, None).await;
        let page = format!("{}/{slug}", origin["url"].as_str().unwrap());
        let mut browser = Browser::new(self.server.address());
        let answer = browser
            .get(&format!("{page}/auth/providers"))
            .await
            .expect(200);
        self.record("list_providers", "answer", "providers", &answer.json());
        let login = format!("{page}/auth/login");
        let answer = browser.get(&login).await.expect(302);
        let asked = url::Url::parse(&location(&login, &answer)).unwrap();
        let asked: BTreeMap<_, _> = asked.query_pairs().into_owned().collect();
        let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
        let callback = format!("{BASE_URL}/_svc/auth/callback/acme?{query}");
        let (_, answer) = browser.open(&callback).await;
        assert_eq!(answer.status, 200);
        let status = format!("{page}/auth/status");
        let answer = browser.get(&status).await.expect(200);
        self.record("get_visitor", "answer", "signed in", &answer.json());
        let answer = self
            .server
            .get(&format!("/{slug}/auth/status"))
            .answer()
            .await;
        self.record(
            "get_visitor",
            "answer",
            "nobody",
            &answer.expect(200).json(),
        );
        let to = format!("{project}/visitors");
        self.answer(("list_visitors", "visitors"), (Method::GET, &to), None)
            .await;
    }

    async fn claim(&mut self, project: &str) {
        let share = json!({ "content": "# Prices", "type": "markdown", "name": "prices" });
        let share = self.ask(Method::POST, "/api/v1/deploy", Some(&share)).await;
        let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
        let path = format!("{project}/frontends/claim");
        self.both(("claim_share", "share"), (Method::POST, &path), body)
            .await;
        self.ask_nothing(Method::DELETE, &format!("{project}/frontends/prices"))
            .await;
    }

    async fn ask_nothing(&self, method: Method, path: &str) {
        self.server.advance(7);
        let request = self.owner.request(&self.server, method, path);
        request.answer().await.expect(204);
    }

    /// Answers the address of the project.
    async fn project(&mut self) -> String {
        let project = json!({ "name": "Web shop", "description": "Orders and stock" });
        let to = (Method::POST, "/api/v1/projects");
        let made = self.both(("create_project", "project"), to, project).await;
        let project = format!("/api/v1/projects/{}", made["id"].as_str().unwrap());
        let name = json!({ "name": "Garden shop" });
        let to = (Method::PATCH, project.as_str());
        self.both(("update_project", "name"), to, name).await;
        project
    }

    async fn backend(&mut self, project: &str) {
        let (backend, post) = (format!("{project}/backend"), Method::POST);
        let ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
        let to = (post.clone(), backend.as_str());
        self.both(("create_backend", "backend"), to, json!({ "ddl": ddl }))
            .await;
        let actions = json!({ "actions": [
            { "name": "add_note", "sql": "INSERT INTO notes (text) VALUES (:text) RETURNING id", "note": "Anybody may." },
            { "name": "get_note", "sql": "SELECT id, text FROM notes WHERE id = :id" },
        ] });
        let path = format!("{backend}/actions");
        let tried = format!("{path}?dry_run=true");
        let to = (Method::PUT, tried.as_str());
        self.answer(("define_actions", "tried"), to, Some(actions.clone()))
            .await;
        let to = (Method::PUT, path.as_str());
        self.both(("define_actions", "actions"), to, actions).await;
        let page = json!({
            "type": "html", "content": "<!doctype html><title>Notes</title><p>Nothing yet", "requested_slug": "notes", "title": "Notes",
        });
        let frontends = format!("{project}/frontends");
        let to = (post.clone(), frontends.as_str());
        self.both(("create_frontend", "page"), to, page).await;
        let note = json!({ "action": "add_note", "params": { "text": "water the beans" } });
        let to = (post.clone(), "/notes/api/op");
        self.both(("call_action", "call"), to.clone(), note).await;
        let batch = json!({ "ops": [
            { "action": "add_note", "params": { "text": "buy seeds" } },
            { "action": "get_note", "params": { "id": { "from": [0, "id"] } } },
        ] });
        self.both(("call_action", "batch"), to, batch).await;
        let count = json!({ "sql": "SELECT count(*) AS n FROM notes WHERE text LIKE :like", "params": { "like": "%bean%" } });
        let to = (post, "/notes/api/query");
        self.both(("run_query", "count"), to, count).await;
        let to = (Method::GET, "/notes/api/schema");
        self.answer(("get_schema", "schema"), to, None).await;
    }

    async fn change_backend(&mut self, project: &str) {
        let backend = format!("{project}/backend");
        let migration = json!({
            "ddl": "ALTER TABLE notes ADD COLUMN done INTEGER NOT NULL DEFAULT 0;", "note": "What is done stays in the list.",
        });
        let tried = format!("{backend}?dry_run=true");
        let to = (Method::PATCH, tried.as_str());
        self.answer(("update_backend", "tried"), to, Some(migration.clone()))
            .await;
        let to = (Method::PATCH, backend.as_str());
        self.both(("update_backend", "migration"), to.clone(), migration)
            .await;
        // What a switch answers is what a look at the backend does.
        let switch = json!({ "realtime": true });
        self.ask(to.0, to.1, Some(&switch)).await;
        self.record("update_backend", "request", "switch", &switch);
        let agents = json!({ "agents": true });
        let to = (Method::PATCH, backend.as_str());
        self.ask(to.0, to.1, Some(&agents)).await;
        self.record("update_backend", "request", "agents", &agents);
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "get_note", "arguments": { "id": 1 } },
        });
        let to = (Method::POST, "/notes/mcp");
        self.both(("call_app_tool", "call"), to, call).await;
        let to = (Method::GET, backend.as_str());
        self.answer(("get_backend", "backend"), to, None).await;
        let path = format!("{backend}/rooms");
        let to = (Method::GET, path.as_str());
        self.answer(("list_rooms", "rooms"), to, None).await;
        let message = json!({ "type": "note", "data": { "text": "Dinner is ready" } });
        let path = format!("{backend}/rooms/kitchen/messages");
        let to = (Method::POST, path.as_str());
        self.both(("send_to_room", "message"), to, message).await;
        let path = format!("{backend}/history");
        let to = (Method::GET, path.as_str());
        let past = self
            .answer(("list_backend_history", "history"), to, None)
            .await;
        let body = json!({ "at": past["moments"][1]["at"] });
        let path = format!("{backend}/restore");
        let to = (Method::POST, path.as_str());
        self.both(("restore_backend", "moment"), to, body).await;
    }

    async fn revisions(&mut self, project: &str) {
        let page = format!("{project}/frontends/notes");
        let (revisions, post) = (format!("{page}/revisions"), Method::POST);
        let history = self.ask(Method::GET, &revisions, None).await;
        let base = history["active_revision_id"].clone();
        let edits = json!({
            "base_revision_id": base, "edits": [{ "find": "Nothing yet", "replace": "Water the beans" }], "message": "The first note",
        });
        let to = (post.clone(), revisions.as_str());
        let made = self.both(("create_revision", "edits"), to, edits).await;
        let draft = made["revision"]["revision_id"].clone();
        let path = format!("{revisions}/{}", draft.as_str().unwrap());
        let to = (Method::GET, path.as_str());
        self.answer(("get_revision", "draft"), to, None).await;
        let promotion = json!({ "revision_id": draft, "expected_active_revision_id": base, "message": "Looks right" });
        let path = format!("{page}/promote");
        let to = (post.clone(), path.as_str());
        self.both(("promote_revision", "promotion"), to, promotion)
            .await;
        let path = format!("{page}/content");
        let to = (Method::GET, path.as_str());
        let content = self.answer(("get_content", "content"), to, None).await;
        let held = content["content_sha256"].as_str().unwrap();
        let path = format!("{page}/content?known_content_sha256={held}");
        let to = (Method::GET, path.as_str());
        self.answer(("get_content", "unchanged"), to, None).await;
        let rollback = json!({ "revision_id": base, "expected_active_revision_id": draft, "message": "Too early" });
        let path = format!("{page}/rollback");
        let to = (post, path.as_str());
        self.both(("rollback_revision", "rollback"), to, rollback)
            .await;
        let to = (Method::GET, revisions.as_str());
        self.answer(("list_revisions", "revisions"), to, None).await;
        let path = format!("{page}/releases");
        let to = (Method::GET, path.as_str());
        self.answer(("list_releases", "releases"), to, None).await;
        let body = json!({ "content": "<!doctype html><title>Notes</title><p>Water the beans", "title": "Notes" });
        let to = (Method::PUT, page.as_str());
        self.both(("republish_frontend", "page"), to, body).await;
        let to = (Method::GET, page.as_str());
        self.answer(("get_frontend", "frontend"), to, None).await;
    }

    async fn payments(&mut self, project: &str) {
        let (payments, post) = (format!("{project}/payments"), Method::POST);
        let catalog = format!("{payments}/catalog");
        let price = json!({
            "product_name": "Handbook", "description": "All there is to know.", "label": "PDF", "amount": 900, "currency": "eur",
        });
        let to = (post.clone(), catalog.as_str());
        let made = self.both(("add_price", "price"), to, price).await;
        self.server.advance(7);
        let order = json!({ "price": made["id"], "return_to": "/notes#thanks" });
        let begun = self.server.json("/notes/payments/checkout", &order);
        let begun = begun.header("accept", "application/json").answer().await;
        let cookie = begun
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let cookie = cookie.to_owned();
        self.record("begin_checkout", "request", "order", &order);
        self.record(
            "begin_checkout",
            "answer",
            "page",
            &begun.expect(200).json(),
        );
        self.server.advance(7);
        let now = self.server.server().app().clock.now();
        let paid = till::checkout("cs_test_1", "paid");
        let event = till::event("evt_1", "checkout.session.completed", now.0 / 1000, &paid);
        let sent = till::send(&self.server, event.to_string(), till::SECRET, now).await;
        self.record("receive_webhook", "request", "completed", &event);
        self.record(
            "receive_webhook",
            "answer",
            "received",
            &sent.expect(200).json(),
        );
        let status = self
            .server
            .get("/notes/payments/status")
            .header("cookie", cookie);
        let status = status.answer().await.expect(200).json();
        self.record("payment_status", "answer", "paid", &status);
        let sessions = format!("{payments}/sessions");
        let to = (Method::GET, sessions.as_str());
        self.answer(("list_sessions", "sessions"), to, None).await;
        let price = format!("{catalog}/{}", made["id"].as_str().unwrap());
        let to = (Method::DELETE, price.as_str());
        self.answer(("deactivate_price", "price"), to, None).await;
        let to = (Method::GET, catalog.as_str());
        self.answer(("list_catalog", "catalog"), to, None).await;
    }

    async fn overview(&mut self, project: &str) {
        for (example, path) in [
            (
                ("list_frontends", "frontends"),
                format!("{project}/frontends"),
            ),
            (("get_project", "project"), project.to_owned()),
            (("list_projects", "projects"), "/api/v1/projects".to_owned()),
        ] {
            self.answer(example, (Method::GET, &path), None).await;
        }
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "manage_project", "arguments": { "action": "list" } },
        });
        let to = (Method::POST, "/mcp");
        self.both(("call_tool", "call"), to, call).await;
        let whole = self.ask(Method::GET, "/api/v1/openapi.json", None).await;
        let part = json!({
            "openapi": whole["openapi"], "servers": whole["servers"], "paths": { "/healthz": {} },
            "info": { "title": whole["info"]["title"], "version": whole["info"]["version"] },
        });
        self.record("serve", "answer", "description", &part);
    }
}

/// Walks a server; answers the text of `examples.json`.
async fn recorded() -> String {
    let mut recorder = Recorder::new().await;
    recorder.share().await;
    let project = recorder.project().await;
    recorder.claim(&project).await;
    recorder.backend(&project).await;
    recorder.change_backend(&project).await;
    recorder.revisions(&project).await;
    recorder.payments(&project).await;
    recorder.visitors(&project, "notes").await;
    recorder.overview(&project).await;
    let (people, names) = openapi_people::recorded().await;
    recorder.examples.extend(people);
    let text = names
        .iter()
        .fold(written(&recorder.examples), |text, (name, stable)| {
            text.replace(name, stable)
        });
    with_stable_visitors(&with_stable_tokens(&with_stable_ids(&text)))
}

/// One example in a line, so that a change can be read.
fn written(examples: &Examples) -> String {
    let mut text = "{".to_owned();
    for (at, (operation, parts)) in examples.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(text, "{comma}\n  {}: {{", json!(operation)).unwrap();
        for (at, part) in ["request", "answer"]
            .iter()
            .filter(|part| parts.contains_key(*part))
            .enumerate()
        {
            let comma = if at == 0 { "" } else { "," };
            write!(text, "{comma}\n    {}: {{", json!(part)).unwrap();
            for (at, (name, example)) in parts[part].iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(text, "{comma}\n      {}: {example}", json!(name)).unwrap();
            }
            text.push_str("\n    }");
        }
        text.push_str("\n  }");
    }
    text.push_str("\n}\n");
    text
}

/// Replaces each random id by one that says in which place it first stands.
fn with_stable_ids(text: &str) -> String {
    let mut ids: Vec<&str> = Vec::new();
    let is_id = |text: &&str| {
        let dashes = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        text.bytes().enumerate().all(|(at, byte)| match dashes(at) {
            true => byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
    };
    for at in 0..text.len() {
        let id = text.get(at..at + 36).filter(is_id);
        ids.extend(id.filter(|id| !ids.contains(id)));
    }
    let stable =
        |text: String, (at, id): (usize, &&str)| text.replace(id, &format!("{ID}{at:012x}"));
    ids.iter().enumerate().fold(text.to_owned(), stable)
}

/// Replaces each random visitor by one and the same.
fn with_stable_visitors(text: &str) -> String {
    let mut parts = text.split("usr_");
    let mut stable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let is_random = part.len() - rest.len() == 22;
        write!(
            stable,
            "usr_{}",
            if is_random {
                "7Jp2mQ0aZc91LxTvBnRk4s"
            } else {
                ""
            }
        )
        .unwrap();
        stable.push_str(if is_random { rest } else { part });
    }
    stable
}

/// Replaces each random token by one and the same.
fn with_stable_tokens(text: &str) -> String {
    let stable = "0q8Rx".repeat(9);
    let mut text = text.to_owned();
    for prefix in ["svcd_", "\"price_"] {
        let mut parts = text.split(prefix);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            // Names that only begin like one, as a field's, are none.
            let token = if part.len() - rest.len() == 43 {
                &stable[..43]
            } else {
                &part[..part.len() - rest.len()]
            };
            write!(whole, "{prefix}{token}{rest}").unwrap();
        }
        text = whole;
    }
    text
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/src/openapi/examples.json")
}

#[tokio::test]
async fn examples_are_what_the_server_answers() {
    let fresh = recorded().await;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file(), &fresh).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(file()).unwrap();
    let (kept, fresh): (BTreeSet<_>, BTreeSet<_>) =
        (kept.lines().collect(), fresh.lines().collect());
    let differing: Vec<_> = kept.symmetric_difference(&fresh).collect();
    assert!(
        differing.is_empty(),
        "examples.json is stale: look at the difference, and run this with UPDATE_GOLDEN=1 if the server is right: {differing:#?}"
    );
}
