//! The lanes that render pages: order of callers, cancellation of abandoned work, and the budget of a page.

use http::Method;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, hostile, wait_until};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture};

/// Sources that the hostile renderer works on without end, and that it renders at once.
const ENDLESS: &str = "l";
const HARMLESS: &str = "a";
/// Time that no test waits for, in milliseconds.
const UNREACHED_MILLISECONDS: u64 = 3_600_000;

/// Returns how many threads of a lane serve everybody.
fn lane_threads() -> u64 {
    std::thread::available_parallelism().unwrap().get() as u64
}

/// Returns how many of them one client may hold.
fn threads_per_client() -> u64 {
    (lane_threads() / 2).max(1)
}

/// A server whose numbers can be read.
struct LaneServer {
    server: TestServer,
    /// Where the hostile renderer lies, if it serves.
    _guests: Option<TempDir>,
}

impl LaneServer {
    /// A server whose renderer works as long as its page says.
    async fn with_hostile_renderer() -> Self {
        Self::with_hostile_renderer_and(|_| {}).await
    }

    /// One that has other limits, too.
    async fn with_hostile_renderer_and(change: impl FnOnce(&mut svc::config::Limits)) -> Self {
        let guests = TempDir::new().unwrap();
        let folder = guests.path().join("render");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("000001-hostile.wasm"), hostile::renderer()).unwrap();
        let endless = |limits: &mut svc::config::Limits| {
            (limits.render_fuel, limits.page_fuel) = (1 << 60, 1 << 60);
            (limits.render_ms, limits.page_ms) = (UNREACHED_MILLISECONDS, UNREACHED_MILLISECONDS);
            limits.page_processor_ms = UNREACHED_MILLISECONDS;
        };
        let builder = TestServer::builder().limits(endless).limits(change);
        let builder = builder.settings(|settings| {
            settings.guests = Some(guests.path().to_owned());
            settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
            settings.ops_listen = Some(([127, 0, 0, 1], 0).into());
        });
        let server = builder.start().await;
        let ready = async || (server.get("/readyz").answer().await.status == 200).then_some(());
        wait_until("the guests to be loaded", ready).await;
        Self {
            server,
            _guests: Some(guests),
        }
    }

    /// A server with the guests that are built in.
    async fn with_built_in_guests() -> Self {
        let builder = TestServer::builder();
        let server = builder
            .settings(|s| s.ops_listen = Some(([127, 0, 0, 1], 0).into()))
            .start()
            .await;
        Self {
            server,
            _guests: None,
        }
    }

    /// Reads a number; one that nothing was counted in is 0.
    async fn metric(&self, name: &str) -> f64 {
        let ops = self.server.server().ops_address().unwrap();
        let client = svc_tests::http_client().build().unwrap();
        let answer = client.get(format!("http://{ops}/metrics")).answer().await;
        let text = answer.text();
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Counts the jobs of a class that hold a thread of the lane for pages.
    async fn running_jobs(&self, class: &str) -> f64 {
        let labels = format!("{{lane=\"pages\",class=\"{class}\"}}");
        self.metric(&format!("svc_worker_running{labels}")).await
    }

    /// Counts those that wait for one.
    async fn waiting_jobs(&self, class: &str) -> f64 {
        let labels = format!("{{lane=\"pages\",class=\"{class}\"}}");
        self.metric(&format!("svc_worker_waiting{labels}")).await
    }

    async fn wait_until_running(&self, class: &str, jobs: u64) {
        let what = format!("{jobs} jobs of a {class} to run");
        let look = async || (self.running_jobs(class).await == jobs as f64).then_some(());
        wait_until(&what, look).await;
    }

    async fn wait_until_waiting(&self, class: &str, jobs: u64) {
        let what = format!("{jobs} jobs of a {class} to wait");
        let look = async || (self.waiting_jobs(class).await == jobs as f64).then_some(());
        wait_until(&what, look).await;
    }

    /// Calls of the renderer that ended so.
    async fn renderer_calls(&self, outcome: &str) -> f64 {
        let labels = format!("{{function=\"render\",outcome=\"{outcome}\"}}");
        self.metric(&format!("svc_guest_calls_total{labels}")).await
    }

    fn request_from(&self, client: u64, path: &str, body: &Value) -> RequestBuilder {
        let address = format!("192.0.2.{client}");
        self.server
            .json(path, body)
            .header("x-forwarded-for", address)
    }

    fn share_request(&self, client: u64, content: &str) -> RequestBuilder {
        let body = json!({ "type": "markdown", "content": content });
        self.request_from(client, "/api/v1/deploy", &body)
    }

    fn preview_request(&self, client: u64, content: &str) -> RequestBuilder {
        let body = json!({ "type": "markdown", "content": content });
        self.request_from(client, "/_svc/preview", &body)
    }

    /// Has as many strangers as there are threads hold them all.
    async fn occupy_all_threads(&self) -> Vec<JoinHandle<Answer>> {
        let all = (0..lane_threads())
            .map(|client| send_in_background(self.share_request(client, ENDLESS)));
        let all = all.collect();
        self.wait_until_running("stranger", lane_threads()).await;
        all
    }
}

/// Sends a request, and again where it has waited for a thread in vain; aborting it hangs up.
fn send_in_background(request: RequestBuilder) -> JoinHandle<Answer> {
    tokio::spawn(async move {
        loop {
            let answer = request.try_clone().unwrap().answer().await;
            if answer.status != 503 {
                return answer;
            }
        }
    })
}

fn hang_up(requests: &[JoinHandle<Answer>]) {
    requests.iter().for_each(JoinHandle::abort);
}

fn tool_call(site: &LaneServer) -> RequestBuilder {
    let arguments = json!({ "type": "markdown", "content": ENDLESS });
    let call = json!({ "name": "deploy_asset", "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    site.request_from(1, "/mcp", &message)
        .header("mcp-protocol-version", "2025-11-25")
        .header("accept", "application/json, text/event-stream")
}

#[tokio::test]
async fn a_guest_stops_when_the_client_that_it_works_for_hangs_up() {
    let site = LaneServer::with_hostile_renderer().await;
    let stored = site.server.snapshot();
    let form = format!("content={ENDLESS}&type=markdown");
    let doors = [
        ("stranger", site.share_request(1, ENDLESS)),
        (
            "stranger",
            site.share_request(1, ENDLESS)
                .header("idempotency-key", "k"),
        ),
        (
            "stranger",
            site.server
                .request(Method::PUT, "/api/v1/deploy/endless.md")
                .body(ENDLESS),
        ),
        (
            "stranger",
            site.server
                .post("/_svc/share")
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form),
        ),
        ("stranger", tool_call(&site)),
        ("preview", site.preview_request(1, ENDLESS)),
    ];
    for (number, (class, request)) in (1_u32..).zip(doors) {
        let request = send_in_background(request);
        site.wait_until_running(class, 1).await;
        request.abort();
        let stopped =
            async || (site.renderer_calls("abandoned").await == f64::from(number)).then_some(());
        wait_until("the guest to stop", stopped).await;
        site.wait_until_running(class, 0).await;
    }
    assert_eq!(site.metric("svc_guest_instances").await, 0.0);
    assert_eq!(site.server.snapshot(), stored, "nothing was stored");
    // A request that was given up is no first answer: the key is free.
    let again = site
        .share_request(1, HARMLESS)
        .header("idempotency-key", "k");
    let free = async || {
        let answer = again.try_clone().unwrap().answer().await;
        (answer.status != 409).then_some(answer)
    };
    wait_until("the key to be free", free).await.expect(201);
}

#[tokio::test]
async fn a_page_that_is_stored_is_published_though_its_client_hangs_up() {
    let site = LaneServer::with_built_in_guests().await;
    // Writes wait while another connection writes.
    let rows = rusqlite::Connection::open(site.server.data().join("control.db")).unwrap();
    rows.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = json!({ "content": "kept", "name": "kept" });
    let request = send_in_background(site.server.json("/api/v1/deploy", &body));
    let stored = async || {
        let count = site.metric("svc_publish_seconds_count{part=\"store\"}");
        (count.await == 1.0).then_some(())
    };
    wait_until("the page to be stored", stored).await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    rows.execute_batch("ROLLBACK").unwrap();
    let published = async || {
        let answer = site.server.get("/kept").answer().await;
        (answer.status == 200).then_some(answer)
    };
    let page = wait_until("the page to be published", published).await;
    assert_eq!(page.text(), "kept");
}

#[tokio::test]
async fn a_client_takes_what_waits_for_it_along() {
    let site = LaneServer::with_hostile_renderer().await;
    let (runs, waits) = (threads_per_client(), 3);
    let send = |count| {
        let requests = (0..count).map(|_| send_in_background(site.share_request(1, ENDLESS)));
        requests.collect::<Vec<_>>()
    };
    let running = send(runs);
    site.wait_until_running("stranger", runs).await;
    let waiting = send(waits);
    site.wait_until_waiting("stranger", waits).await;
    // If all hung up at once, a thread might be free, and take one that waits, before the server sees that it is gone, too.
    hang_up(&waiting);
    site.wait_until_waiting("stranger", 0).await;
    hang_up(&running);
    site.wait_until_running("stranger", 0).await;
    assert_eq!(site.renderer_calls("abandoned").await, runs as f64);
    site.share_request(1, HARMLESS).answer().await.expect(201);
    assert_eq!(
        site.renderer_calls("ok").await,
        1.0,
        "what waited never ran"
    );
}

#[tokio::test]
async fn a_page_of_a_project_that_nobody_waits_for_leaves_nothing() {
    let site = LaneServer::with_hostile_renderer().await;
    let owner = Owner::new(&site.server, "acme").await;
    let project = owner.project(&site.server, "Lanes").await;
    let path = format!("/api/v1/projects/{project}/frontends");
    let page = |content: &str| {
        let body = json!({ "type": "markdown", "content": content, "requested_slug": "page" });
        owner.request(&site.server, Method::POST, &path).json(&body)
    };
    let request = send_in_background(page(ENDLESS));
    site.wait_until_running("owner", 1).await;
    request.abort();
    site.wait_until_running("owner", 0).await;
    let gone = async || {
        let listed = owner
            .get(&site.server, &format!("/{project}/frontends"))
            .await;
        let frontends = listed.expect(200).json()["frontends"].take();
        frontends.as_array().unwrap().is_empty().then_some(())
    };
    wait_until("the frontend to be gone", gone).await;
    let made = page(HARMLESS).answer().await.expect(201).json();
    assert_eq!(made["slug"], "page");
}

#[tokio::test]
async fn owners_gates_and_passwords_never_wait_for_pages_of_strangers() {
    let site = LaneServer::with_hostile_renderer().await;
    let protected =
        json!({ "type": "markdown", "content": HARMLESS, "name": "safe", "password": "sesame" });
    let answer = site
        .request_from(9, "/api/v1/deploy", &protected)
        .answer()
        .await;
    answer.expect(201);
    let fixture = ProjectFixture::on_server(site.server, GUESTS).await;
    let site = LaneServer {
        server: fixture.server,
        _guests: site._guests,
    };
    let held = site.occupy_all_threads().await;

    let (owner, project) = (&fixture.owner, &fixture.project);
    owner.frontend(&site.server, project, "another").await;
    let actions =
        json!({ "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM guests" }] });
    let path = format!("/{project}/backend/actions");
    let defined = owner.send(&site.server, Method::PUT, &path, &actions).await;
    defined.expect(200);
    site.server.unlock("safe", "sesame").await;
    // A share of a caller with a credential is an owner's work, too.
    let share = json!({ "type": "markdown", "content": HARMLESS });
    let share = owner
        .request(&site.server, Method::POST, "/api/v1/deploy")
        .json(&share);
    share.answer().await.expect(201);

    assert_eq!(site.running_jobs("stranger").await, lane_threads() as f64);
    let next = send_in_background(site.share_request(100, HARMLESS));
    site.wait_until_waiting("stranger", 1).await;
    held[0].abort();
    next.await.unwrap().expect(201);
    hang_up(&held);
    site.wait_until_running("stranger", 0).await;
}

#[tokio::test]
async fn nobody_holds_the_threads_of_others() {
    let site = LaneServer::with_hostile_renderer().await;
    let (greedy, modest) = (
        Owner::new(&site.server, "greedy").await,
        Owner::new(&site.server, "modest").await,
    );
    let share_by = |owner: &Owner, content: &str| {
        let body = json!({ "type": "markdown", "content": content });
        owner
            .request(&site.server, Method::POST, "/api/v1/deploy")
            .json(&body)
    };
    let held: Vec<_> = (0..lane_threads() + 3)
        .map(|_| send_in_background(share_by(&greedy, ENDLESS)))
        .collect();
    site.wait_until_running("owner", lane_threads()).await;
    site.wait_until_waiting("owner", 3).await;
    let other = send_in_background(share_by(&modest, HARMLESS));
    other.await.unwrap().expect(201);
    site.wait_until_waiting("owner", 3).await;
    hang_up(&held);
    site.wait_until_running("owner", 0).await;

    let held: Vec<_> = (0..threads_per_client() + 3)
        .map(|_| send_in_background(site.preview_request(1, ENDLESS)))
        .collect();
    site.wait_until_running("preview", threads_per_client())
        .await;
    site.wait_until_waiting("preview", 3).await;
    if lane_threads() > threads_per_client() {
        let published = send_in_background(site.share_request(2, HARMLESS));
        published.await.unwrap().expect(201);
        // All previews together hold no more than one client may.
        let other = send_in_background(site.preview_request(2, ENDLESS));
        site.wait_until_waiting("preview", 4).await;
        assert_eq!(
            site.running_jobs("preview").await,
            threads_per_client() as f64
        );
        other.abort();
    }
    hang_up(&held);
    site.wait_until_running("preview", 0).await;
}

#[tokio::test]
async fn sources_that_wait_or_are_rendered_take_bounded_memory() {
    let bound = |limits: &mut svc::config::Limits| limits.page_work_bytes = 100_000;
    let site = LaneServer::with_hostile_renderer_and(bound).await;
    let owner = Owner::new(&site.server, "acme").await;
    let large = HARMLESS.repeat(30_000);
    // One page of any size is taken from a client that has no other.
    let held = send_in_background(site.share_request(1, &format!("{ENDLESS}{large}{large}")));
    site.wait_until_running("stranger", 1).await;
    // A client has a tenth, strangers together four fifths.
    let requests =
        [(1, HARMLESS), (2, &*large)].map(|(client, source)| site.share_request(client, source));
    // They wait for room at the same time.
    let [first, second] = requests.map(|request| request.answer());
    let (first, second) = tokio::join!(first, second);
    for refused in [first, second] {
        refused.problem(503, "capacity_reached");
        assert!(refused.header("retry-after").is_some());
    }
    if lane_threads() > threads_per_client() {
        site.share_request(2, HARMLESS).answer().await.expect(201);
    }
    let body = json!({ "type": "markdown", "content": large });
    let published = owner.request(&site.server, Method::POST, "/api/v1/deploy");
    published.json(&body).answer().await.expect(201);
    hang_up(&[held]);
    let room = async || {
        let answer = site.share_request(2, &large).answer().await;
        (answer.status == 201).then_some(())
    };
    wait_until("the room to be free again", room).await;
}

#[tokio::test]
async fn a_page_that_is_published_is_rendered_before_a_preview_that_came_first() {
    let site = LaneServer::with_hostile_renderer().await;
    let held = site.occupy_all_threads().await;
    let preview = send_in_background(site.preview_request(100, ENDLESS));
    site.wait_until_waiting("preview", 1).await;
    let share = send_in_background(site.share_request(101, HARMLESS));
    site.wait_until_waiting("stranger", 1).await;
    // One thread is free from here on. Who gets it first is seen by what was rendered when the preview has it, which keeps it; a share has
    // more to do on it than to be rendered, and may have to wait for that.
    held[0].abort();
    site.wait_until_running("preview", 1).await;
    assert_eq!(
        site.renderer_calls("ok").await,
        1.0,
        "the share was rendered"
    );
    preview.abort();
    share.await.unwrap().expect(201);
    hang_up(&held);
    site.wait_until_running("stranger", 0).await;
}

#[tokio::test]
async fn a_preview_that_fails_is_not_rendered_at_each_look() {
    let site = LaneServer::with_built_in_guests().await;
    let owner = Owner::new(&site.server, "acme").await;
    let project = owner.project(&site.server, "House").await;
    let mut previews = Vec::new();
    for slug in ["one", "two"] {
        let made = owner.frontend(&site.server, &project, slug).await;
        // Nobody has looked at what was published at once.
        let revisions = format!("/{project}/frontends/{slug}/revisions");
        let listed = owner.get(&site.server, &revisions).await.json();
        let (frontend, active) = (text(&made["id"]), text(&listed["active_revision_id"]));
        previews.push(format!("/_preview/{frontend}/{active}/"));
    }
    let too_little = |settings: &mut svc::config::Settings| {
        settings.limits.page_fuel = 1_000;
        (
            settings.limits.preview_burst,
            settings.limits.preview_per_minute,
        ) = (1, 1);
    };
    let site = LaneServer {
        server: site.server.restart_with(too_little).await,
        _guests: None,
    };
    let look = async |number: usize| site.server.get(&previews[number]).answer().await;
    for _ in 0..2 {
        look(0).await.problem(400, "render_failed");
        assert_eq!(site.renderer_calls("fuel").await, 1.0);
    }
    // The first look took the client's token.
    look(1).await.problem(429, "rate_limited");
    site.server.advance(60);
    look(0).await.problem(400, "render_failed");
    assert_eq!(site.renderer_calls("fuel").await, 2.0);
}

/// Markdown with some diagrams that are all alike.
fn with_diagrams(count: usize) -> String {
    let diagram = "```mermaid\nflowchart TD\n  A[Order] --> B{Paid?}\n  B -->|yes| C[Ship]\n  B -->|no| D[Wait]\n```\n\n";
    format!("# Diagrams\n\n{}", diagram.repeat(count))
}

#[tokio::test]
async fn a_page_has_one_budget_with_all_its_drawings() {
    let site = LaneServer::with_built_in_guests().await;
    let share = |count| json!({ "type": "markdown", "content": with_diagrams(count) });
    let whole = site.server.deploy(&share(1)).await;
    assert_eq!(whole.get("warnings"), None);
    let spent = async |function: &str| {
        let name = format!("svc_guest_fuel_sum{{function=\"{function}\"}}");
        site.metric(&name).await as u64
    };
    let (render, draw) = (spent("render").await, spent("draw").await);
    let enough_for = async |server: TestServer, fuel: u64| {
        server.restart_with(|s| s.limits.page_fuel = fuel).await
    };

    // For the text of five, which is little more than that of one, and for two drawings and a half.
    let server = enough_for(site.server, 2 * render + draw * 5 / 2).await;
    let made = server.deploy(&share(5)).await;
    let warnings = made["warnings"].as_array().unwrap();
    let lines: Vec<_> = warnings
        .iter()
        .map(|w| w["line"].as_u64().unwrap())
        .collect();
    assert!(lines.is_sorted() && lines[0] > 7, "{warnings:?}");
    let drawn = 5 - warnings.len();
    assert!((1..=2).contains(&drawn), "{warnings:?}");
    for warning in warnings {
        assert_eq!(warning["code"], "diagram_not_drawn");
        let detail = warning["detail"].as_str().unwrap();
        assert!(
            detail.contains("The page has used up its budget of fuel"),
            "{detail}"
        );
    }
    let path = format!("/{}", made["slug"].as_str().unwrap());
    let page = server.get(&path).answer().await.expect(200);
    let notes = page.text().matches("This diagram is not drawn.").count();
    assert_eq!(notes, warnings.len());

    // A page that is one diagram fails with it.
    let server = enough_for(server, draw / 2).await;
    let diagram = with_diagrams(1);
    let diagram = diagram
        .split("```mermaid\n")
        .nth(1)
        .unwrap()
        .replace("```", "");
    let answer = server
        .json(
            "/api/v1/deploy",
            &json!({ "type": "mermaid", "content": diagram }),
        )
        .answer()
        .await;
    assert_eq!(answer.problem(400, "render_failed")["budget"], "fuel");

    // A preview may use a quarter of what suffices for the page.
    let server = enough_for(server, 2 * render + draw * 6).await;
    let made = server.deploy(&share(5)).await;
    assert_eq!(made.get("warnings"), None);
    let preview = server.json("/_svc/preview", &share(5)).answer().await;
    let preview = preview.expect(200).json();
    let html = preview["html"].as_str().unwrap();
    assert!(html.contains("This diagram is not drawn."), "{html}");
}
