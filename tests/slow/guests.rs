//! Guests that are switched under load: nothing fails, and every page is one guest's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use svc_sandbox::{World, built_in_component};
use svc_tests::guests::{RendererBehaviour, renderer, with_other_digest, write};
use svc_tests::{Answer, Binary, Process, ReadAnswer, wait_until};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// How often a guest is switched, and how many requests there are at least.
const SWITCHES: usize = 100;
const REQUESTS: usize = 10_000;
/// Every so many switches it is the gate's turn.
const GATES: usize = 10;
/// Clients that ask at once.
const CLIENTS: usize = 4;

/// A project with a page and an action, on a server without rate limits.
struct GuestsInstallation {
    binary: Binary,
    directory: TempDir,
    process: Process,
}

impl GuestsInstallation {
    async fn new(binary: Binary) -> Self {
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("svc.toml");
        let limits = "deploy_burst op_burst op_deployment_burst active_deployments";
        let limits: String = limits
            .split(' ')
            .map(|name| format!("{name} = 1000000\n"))
            .collect();
        std::fs::write(&config, format!("[limits]\n{limits}")).unwrap();
        let data = directory.path().join("data");
        let config = ["--config", config.to_str().unwrap()];
        let made = binary
            .run(&data, &["namespace", "create", "acme", "--json"])
            .await;
        let credential = made.json()["credential"].as_str().unwrap().to_owned();
        let process = binary.serve(&data, &config).await;
        let ready = async || (process.get("/readyz").await.status == 200).then_some(());
        wait_until("the guests to be loaded", ready).await;
        let site = Self {
            binary,
            directory,
            process,
        };
        let send = async |method: http::Method, path: &str, body: Value| -> Value {
            let url = site.process.url(&format!("/api/v1/projects{path}"));
            let request = site.process.client().request(method, url);
            let answer = request.bearer_auth(&credential).json(&body).answer().await;
            assert!(answer.status < 300, "{}", answer.text());
            answer.json()
        };
        let project = send(http::Method::POST, "", json!({ "name": "House" })).await;
        let project = format!("/{}", project["id"].as_str().unwrap());
        let post = http::Method::POST;
        let path = format!("{project}/backend");
        send(post.clone(), &path, json!({ "ddl": "CREATE TABLE a (x)" })).await;
        let actions =
            json!({ "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM a" }] });
        send(
            http::Method::PUT,
            &format!("{project}/backend/actions"),
            actions,
        )
        .await;
        let room = json!({ "type": "html", "content": "x", "requested_slug": "room" });
        send(post, &format!("{project}/frontends"), room).await;
        site
    }

    async fn guest(&self, arguments: &[&str]) -> Value {
        let arguments = [&["guest"], arguments, &["--json"]].concat();
        let data = self.directory.path().join("data");
        self.binary.run(&data, &arguments).await.json()
    }
}

/// Asserts that one guest made the whole page: its beginning, its end and its drawing.
#[track_caller]
fn is_whole(page: &str) {
    let Some(sign) = page.split("begun by ").nth(1) else {
        // The guest that is built in does not sign; a drawing of another's would.
        assert!(!page.contains("drawn by "), "{page}");
        return;
    };
    let sign = sign.split('<').next().unwrap();
    for part in ["begun", "drawn", "ended"] {
        assert_eq!(
            page.matches(&format!("{part} by {sign}<")).count(),
            1,
            "{page}"
        );
    }
    assert_eq!(page.matches(" by ").count(), 3, "{page}");
}

async fn one_client(
    client: reqwest::Client,
    base: String,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
) {
    let post = async |path: &str, body: &Value| -> Answer {
        client
            .post(format!("{base}{path}"))
            .json(body)
            .answer()
            .await
    };
    while !stop.load(Ordering::Relaxed) {
        let body = json!({ "type": "markdown", "content": "# Heading\n\n```mermaid\nflowchart TD\n  A --> B\n```\n" });
        let made = post("/api/v1/deploy", &body).await.expect(201).json();
        let url = format!("{base}/{}", made["slug"].as_str().unwrap());
        is_whole(client.get(url).answer().await.expect(200).text());
        let body = json!({ "action": "count" });
        let called = post("/room/api/op", &body).await.expect(200).json();
        assert_eq!(called["rows"][0]["n"], 0);
        asked.fetch_add(3, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_switches_fail_no_request_and_mix_no_page() {
    let site = GuestsInstallation::new(super::svc()).await;
    let folder = site.directory.path();
    let pages =
        ["alpha", "beta"].map(|sign| write(folder, sign, &renderer(sign, RendererBehaviour::Good)));
    let gate = write(
        folder,
        "gate",
        &with_other_digest(built_in_component(World::Gate), b'g'),
    );
    let (stop, asked) = (
        Arc::new(AtomicBool::new(false)),
        Arc::<AtomicUsize>::default(),
    );
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = site.process.client().clone();
        let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
        clients.spawn(one_client(client, site.process.url(""), stop, asked));
    }
    let mut switches = 0;
    while switches < SWITCHES || asked.load(Ordering::Relaxed) < REQUESTS {
        let file = &pages[switches % 2];
        let done = match switches % GATES {
            8 => {
                site.guest(&["install", "--no-replay", gate.to_str().unwrap()])
                    .await
            }
            9 => site.guest(&["rollback", "gate"]).await,
            5 => site.guest(&["rollback", "render"]).await,
            _ => {
                site.guest(&["install", "--no-replay", file.to_str().unwrap()])
                    .await
            }
        };
        assert_eq!(done["effect"], "switched", "{done}");
        switches += 1;
        // A client that has failed must not be waited for.
        assert!(clients.try_join_next().is_none(), "a client has ended");
    }
    stop.store(true, Ordering::Relaxed);
    clients.join_all().await;
    let status = site.guest(&["status"]).await;
    for name in ["render", "gate"] {
        let history = status[name]["history"].as_array().unwrap();
        assert!(
            history.iter().all(|change| change["kind"] != "automatic"),
            "{history:?}"
        );
        assert_eq!(status[name]["usage"]["traps"], 0);
    }
    println!(
        "{} requests over {switches} switches",
        asked.load(Ordering::Relaxed)
    );
}
