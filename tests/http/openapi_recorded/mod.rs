//! Examples of the description, recorded: a server is walked from a share to a rollback, and what it was asked and answered
//! is what `host/api/src/openapi/examples.json` has.

mod changes;
mod stable;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use svc_tests::browser::{Browser, location};
use svc_tests::dns::DnsServer;
use svc_tests::{NOW, ReadAnswer, TestServer};

use self::stable::{
    with_stable_files, with_stable_ids, with_stable_proofs, with_stable_tokens,
    with_stable_visitors,
};
use crate::domains::use_dns;
use crate::openapi_people;
use crate::owner::Owner;
use crate::payments::fake_stripe::{self, FakeStripe};
use crate::visitors::guest_book::provider_settings;
use crate::visitors::stub_issuer::StubIssuer;

/// The server that the examples are from.
pub(crate) const BASE_URL: &str = "https://svc.example";
/// Prefix of the ids in the examples, in place of random ones.
const ID: &str = "01a1ff0b-0540-7000-8000-";

/// By operation and part, request or answer: the examples by their names.
pub(crate) type Examples = BTreeMap<String, BTreeMap<&'static str, BTreeMap<String, Value>>>;

/// A server, its owner, and what was recorded.
struct ExampleRecorder {
    server: TestServer,
    owner: Owner,
    dns: DnsServer,
    examples: Examples,
}

impl ExampleRecorder {
    async fn new() -> Self {
        let issuer = StubIssuer::start().await;
        // Examples take longer than a token holds.
        issuer.change(|inner| inner.claims = json!({ "exp": NOW.0 / 1000 + 86_400 }));
        let stripe = FakeStripe::start().await.settings();
        let dns = DnsServer::start().await;
        let server = TestServer::builder().settings(|settings| {
            use_dns(settings, &dns);
            settings.base_url = Some(BASE_URL.parse().unwrap());
            settings.sites_domain = Some("sites.example".to_owned());
            settings.providers = vec![provider_settings("acme", &issuer)];
            settings.stripe = Some(stripe);
        });
        let server = server.start().await;
        let owner = Owner::new(&server, "acme").await;
        Self {
            server,
            owner,
            dns,
            examples: Examples::new(),
        }
    }

    fn record(&mut self, operation: &str, part: &'static str, name: &str, value: &Value) {
        let examples = self.examples.entry(operation.to_owned()).or_default();
        let known = examples.entry(part).or_default();
        known.insert(name.to_owned(), value.clone());
    }

    /// Asks a few seconds after what was asked before, as people do; returns the document.
    async fn send_request(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
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
    async fn record_request_and_answer(
        &mut self,
        example: (&str, &str),
        to: (Method, &str),
        body: Value,
    ) -> Value {
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
        let answer = self.send_request(method, path, body.as_ref()).await;
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
        self.record_request_and_answer(("deploy", "markdown"), to, share)
            .await;
        let body = json!({ "password": "tea-at-five" });
        let to = (post.clone(), "/api/v1/auth/minutes");
        self.record_request_and_answer(("unlock", "password"), to, body)
            .await;
        let report = json!({
            "slug": "minutes", "reason": "phishing", "details": "It asks for the password of a bank.", "contact": "jo@example.org",
        });
        let to = (post.clone(), "/api/v1/reports");
        self.record_request_and_answer(("report", "phishing"), to, report)
            .await;
        let page = json!({ "content": "Hello <b>there</b>", "type": "html", "title": "Hello" });
        let to = (post.clone(), "/_svc/preview");
        self.record_request_and_answer(("preview_share", "html"), to, page)
            .await;
        let visits = r#"[{"day": "Monday", "visits": 12}, {"day": "Tuesday", "visits": 7}]"#;
        let data = json!({ "content": visits, "type": "json", "name": "visits" });
        self.send_request(post, "/api/v1/deploy", Some(&data)).await;
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
    async fn record_visitors(&mut self, project: &str, slug: &str) {
        let origin = self.send_request(Method::GET, project, None).await;
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

    /// Proves a domain of the project, which is removed in the end.
    async fn record_domains(&mut self, project: &str) {
        let (all, name) = (format!("{project}/domains"), "www.garden-shop.com");
        let to = (Method::POST, all.as_str());
        let body = json!({ "name": name });
        let added = self.record_request_and_answer(("add_domain", "domain"), to, body);
        let added = added.await;
        self.dns.set_record(&added["records"][0]);
        let one = format!("{all}/{name}");
        let verify = format!("{one}/verify");
        let to = (Method::POST, verify.as_str());
        self.record_request_and_answer(("verify_domain", "proven"), to, json!({}))
            .await;
        let origin = self.send_request(Method::GET, project, None).await;
        let host = origin["url"].as_str().unwrap().replace("https://", "");
        let to = (Method::PATCH, one.as_str());
        let body = json!({ "redirect_to": host });
        self.record_request_and_answer(("update_domain", "redirect"), to, body)
            .await;
        for (example, path) in [
            (("list_domains", "domains"), &all),
            (("get_domain", "domain"), &one),
        ] {
            self.answer(example, (Method::GET, path), None).await;
        }
        self.send_without_body(Method::DELETE, &one).await;
    }

    /// Records what an owner sees of what was done before.
    async fn record_stats(&mut self, project: &str) {
        let to = format!("{project}/stats?from=2026-11-20T00:00:00.000Z");
        self.answer(("get_stats", "day"), (Method::GET, &to), None)
            .await;
        let to = format!("{project}/log?limit=2&kind=call");
        let mut log = self.send_request(Method::GET, &to, None).await;
        for entry in log["entries"].as_array_mut().unwrap() {
            entry["client"] = json!("5f0c2a9be41d7c36");
            entry["request_id"] = json!("0f3a81c2-000000a7");
        }
        self.record("list_log", "answer", "log", &log);
    }

    async fn record_claim(&mut self, project: &str) {
        let share = json!({ "content": "# Prices", "type": "markdown", "name": "prices" });
        let share = self
            .send_request(Method::POST, "/api/v1/deploy", Some(&share))
            .await;
        let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
        let path = format!("{project}/frontends/claim");
        self.record_request_and_answer(("claim_share", "share"), (Method::POST, &path), body)
            .await;
        self.send_without_body(Method::DELETE, &format!("{project}/frontends/prices"))
            .await;
    }

    async fn send_without_body(&self, method: Method, path: &str) {
        self.server.advance(7);
        let request = self.owner.request(&self.server, method, path);
        request.answer().await.expect(204);
    }

    /// Answers the address of the project.
    async fn project(&mut self) -> String {
        let project = json!({ "name": "Web shop", "description": "Orders and stock" });
        let to = (Method::POST, "/api/v1/projects");
        let made = self
            .record_request_and_answer(("create_project", "project"), to, project)
            .await;
        let project = format!("/api/v1/projects/{}", made["id"].as_str().unwrap());
        let name = json!({ "name": "Garden shop" });
        let to = (Method::PATCH, project.as_str());
        self.record_request_and_answer(("update_project", "name"), to, name)
            .await;
        project
    }

    async fn backend(&mut self, project: &str) {
        let (backend, post) = (format!("{project}/backend"), Method::POST);
        let ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
        let to = (post.clone(), backend.as_str());
        self.record_request_and_answer(("create_backend", "backend"), to, json!({ "ddl": ddl }))
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
        self.record_request_and_answer(("define_actions", "actions"), to, actions)
            .await;
        let page = json!({
            "type": "html", "content": "<!doctype html><title>Notes</title><p>Nothing yet", "requested_slug": "notes", "title": "Notes",
        });
        let frontends = format!("{project}/frontends");
        let to = (post.clone(), frontends.as_str());
        self.record_request_and_answer(("create_frontend", "page"), to, page)
            .await;
        let note = json!({ "action": "add_note", "params": { "text": "water the beans" } });
        let to = (post.clone(), "/notes/api/op");
        self.record_request_and_answer(("call_action", "call"), to.clone(), note)
            .await;
        let batch = json!({ "ops": [
            { "action": "add_note", "params": { "text": "buy seeds" } },
            { "action": "get_note", "params": { "id": { "from": [0, "id"] } } },
        ] });
        self.record_request_and_answer(("call_action", "batch"), to, batch)
            .await;
        let count = json!({ "sql": "SELECT count(*) AS n FROM notes WHERE text LIKE :like", "params": { "like": "%bean%" } });
        let to = (post, "/notes/api/query");
        self.record_request_and_answer(("run_query", "count"), to, count)
            .await;
        let to = (Method::GET, "/notes/api/schema");
        self.answer(("get_schema", "schema"), to, None).await;
    }
}

/// Walks a server; returns the text of `examples.json`.
async fn record_examples() -> String {
    let mut recorder = ExampleRecorder::new().await;
    recorder.share().await;
    let project = recorder.project().await;
    recorder.record_claim(&project).await;
    recorder.backend(&project).await;
    recorder.record_backend_changes(&project).await;
    recorder.record_revisions(&project).await;
    recorder.record_project_release(&project).await;
    recorder.record_payments(&project).await;
    recorder.record_visitors(&project, "notes").await;
    recorder.record_domains(&project).await;
    recorder.record_stats(&project).await;
    recorder.record_overview(&project).await;
    recorder.record_action_versions(&project).await;
    recorder.record_site(&project).await;
    recorder.record_files(&project).await;
    let (people, names) = openapi_people::record_examples().await;
    recorder.examples.extend(people);
    let text = names
        .iter()
        .fold(examples_text(&recorder.examples), |text, (name, stable)| {
            text.replace(name, stable)
        });
    let text = with_stable_tokens(&with_stable_ids(&text));
    with_stable_proofs(&with_stable_visitors(&with_stable_files(&text)))
}

/// One example in a line, so that a change can be read.
fn examples_text(examples: &Examples) -> String {
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

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/api/src/openapi/examples.json")
}

#[tokio::test]
async fn examples_are_what_the_server_answers() {
    let fresh = record_examples().await;
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
