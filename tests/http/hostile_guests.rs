//! Guests that do everything wrong, installed in a server: every call of one is refused or contained, and the host has its memory back.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Process, ReadAnswer, hostile, wait_until};
use tempfile::TempDir;

/// Misdeeds that end at once or with the fuel, by the letter that the guests go by, and the budget that each exhausts. What
/// exhausts none is a guest's failure.
const MISDEEDS: [(char, Option<&str>); 19] = [
    ('l', Some("fuel")),
    ('s', Some("stack")),
    ('m', Some("memory")),
    ('M', Some("memory")),
    ('b', Some("stack")),
    ('B', None),
    ('t', None),
    ('z', None),
    ('i', None),
    ('e', None),
    ('h', None),
    ('W', None),
    ('q', None),
    ('p', None),
    ('u', None),
    ('d', None),
    ('D', None),
    ('n', None),
    ('x', None),
];
/// Further behaviours of a renderer.
const RENDERS: [(char, Option<&str>); 2] = [('g', None), ('o', Some("page_bytes"))];
/// Rounds before the first measurement of memory, and after it.
const ROUNDS: (usize, usize) = (3, 16);
/// Bytes that may be more in memory than before: the allocator keeps up to 64 MB for each thread that had much. A page
/// or two of each round would be more.
const ALLOCATOR_BYTES: u64 = 160 << 20;

/// Tests share the machine with builds and with each other: what is slow must not look like what is endless.
const SETTINGS: &str = "[limits]
render_fuel = 500000000
render_ms = 60000
gate_ms = 60000
deploy_per_minute = 1000000
deploy_burst = 1000000
op_per_minute = 1000000
op_burst = 1000000
";

/// A data directory with settings, in which hostile guests are installed.
struct HostileInstallation {
    directory: TempDir,
    settings: String,
}

impl HostileInstallation {
    fn new(settings: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("svc.toml");
        std::fs::write(&file, settings).unwrap();
        Self {
            settings: file.to_str().unwrap().to_owned(),
            directory,
        }
    }

    fn data(&self) -> &Path {
        self.directory.path()
    }

    fn install(&self, world: &str, component: &[u8]) {
        let folder = self.data().join("guests").join(world);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("000001-hostile.wasm"), component).unwrap();
    }

    async fn serve(&self) -> Process {
        let settings = ["--config", self.settings.as_str()];
        let process = crate::svc().serve(self.data(), &settings).await;
        let ready = async || (process.get("/readyz").await.status == 200).then_some(());
        wait_until("the guests to be loaded", ready).await;
        process
    }
}

/// The bytes of a process that are in memory.
fn resident(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().next().unwrap();
    kilobytes.parse::<u64>().unwrap() << 10
}

async fn publish(svc: &Process, content: &str, name: &str) -> Answer {
    let share = json!({ "type": "markdown", "content": content, "name": name });
    svc.json("/api/v1/deploy", &share).await
}

/// A caller is told which budget ran out, and of a guest's failure nothing.
#[track_caller]
fn assert_contained(answer: &Answer, what: &str, budget: Option<&str>) {
    match budget {
        Some(budget) => {
            let problem = answer.problem(400, "render_failed");
            assert_eq!(problem["budget"], budget, "{what}: {problem}");
        }
        None => {
            let problem = answer.problem(500, "internal").to_string();
            for word in ["wasm", "guest", "trap", "backtrace"] {
                assert!(!problem.contains(word), "{what}: {problem}");
            }
        }
    }
}

#[tokio::test]
async fn hostile_pages_fail_alone_and_their_memory_is_given_back() {
    let site = HostileInstallation::new(SETTINGS);
    site.install("render", &hostile::renderer());
    let svc = site.serve().await;
    publish(&svc, "a page", "harmless").await.expect(201);

    let round = async || {
        for (letter, budget) in MISDEEDS.into_iter().chain(RENDERS) {
            let answer = publish(&svc, &letter.to_string(), "hostile").await;
            assert_contained(&answer, &letter.to_string(), budget);
        }
        // A drawing has the size limit of a page.
        let answer = publish(&svc, "fo", "hostile").await;
        assert_contained(&answer, "fo", Some("page_bytes"));
        svc.get("/harmless").await.expect(200);
    };
    for _ in 0..ROUNDS.0 {
        round().await;
    }
    let before = resident(&svc);
    for _ in 0..ROUNDS.1 {
        round().await;
    }
    let after = resident(&svc);
    assert!(
        after < before + ALLOCATOR_BYTES,
        "{before} bytes have become {after}"
    );
    publish(&svc, "another page", "harmless-too")
        .await
        .expect(201);
}

#[tokio::test]
async fn work_that_takes_too_long_is_a_budget_of_time() {
    let site = HostileInstallation::new(
        "[limits]\nrender_fuel = 1000000000000\nrender_ms = 50\ndeploy_burst = 1000\n",
    );
    site.install("render", &hostile::renderer());
    let svc = site.serve().await;
    for work in ["l", "w"] {
        let answer = publish(&svc, work, "slow").await;
        assert_contained(&answer, work, Some("time"));
    }
}

#[tokio::test]
async fn a_hostile_gate_fails_whoever_asks_it_and_nobody_else() {
    let site = HostileInstallation::new(SETTINGS);
    let made = crate::svc();
    let made = made
        .run(site.data(), &["namespace", "create", "acme", "--json"])
        .await
        .json();
    let credential = made["credential"].as_str().unwrap();
    let svc = site.serve().await;
    let send = async |svc: &Process, method: Method, path: &str, body: &Value| -> Answer {
        let request = svc.client().request(method, svc.url(path));
        request.bearer_auth(credential).json(body).answer().await
    };
    let projects = "/api/v1/projects";
    let project = send(&svc, Method::POST, projects, &json!({ "name": "House" })).await;
    let project = project.expect(201).json();
    let below = |rest: &str| format!("{projects}/{}{rest}", project["id"].as_str().unwrap());
    let backend = json!({ "ddl": "CREATE TABLE a (x)" });
    let answer = send(&svc, Method::POST, &below("/backend"), &backend).await;
    answer.expect(201);
    let room = json!({ "type": "html", "content": "x", "requested_slug": "room" });
    let answer = send(&svc, Method::POST, &below("/frontends"), &room).await;
    answer.expect(201);
    let actions = json!({ "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM a" }] });
    let answer = send(&svc, Method::PUT, &below("/backend/actions"), &actions).await;
    answer.expect(200);
    drop(svc);

    site.install("gate", &hostile::gate());
    let svc = site.serve().await;
    for (letter, budget) in MISDEEDS {
        let asked = json!({ "sql": letter.to_string() });
        let answer = send(&svc, Method::POST, "/room/api/query", &asked).await;
        let problem = match budget {
            Some(_) => answer.problem(400, "invalid_request"),
            None => answer.problem(500, "internal"),
        };
        let detail = problem["detail"].as_str().unwrap();
        let named = budget.is_none_or(|budget| detail.contains(&format!("budget of {budget}")));
        assert!(named, "{letter}: {problem}");
        svc.get("/room").await.expect(200);
    }
}
