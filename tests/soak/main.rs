//! Four weeks of a busy server, shortened: what four hours bring is sent at once, then its clocks move on by as much.

#[expect(dead_code, reason = "the tests over HTTP need the rest")]
#[path = "../http/visitors/guest_book.rs"]
mod guest_book;
#[expect(dead_code, reason = "the tests over HTTP need the rest")]
#[path = "../http/owner.rs"]
mod owner;
#[expect(dead_code, reason = "the tests over HTTP need the rest")]
#[path = "../http/project_fixture.rs"]
mod project_fixture;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};
use svc_tests::fake_stripe::{self, FakeStripe};
use svc_tests::stub_issuer::StubIssuer;
use svc_tests::{Binary, ReadAnswer, Resources, TestServer};
use tempfile::TempDir;
use tokio::runtime::Handle;

use guest_book::{GuestBook, provider_settings};
use owner::text;
use project_fixture::ProjectFixture;

/// Steps of a run, of four hours each.
const STEPS: usize = 4 * 7 * STEPS_OF_A_DAY;
const STEPS_OF_A_DAY: usize = 6;
const STEP: Duration = Duration::from_secs(4 * 3600);

/// Tables of the page's backend.
const DDL: &str = "
CREATE TABLE entries (id INTEGER PRIMARY KEY, user_id TEXT, words TEXT NOT NULL);
CREATE TABLE photos (file TEXT PRIMARY KEY REFERENCES svc_files(id) ON DELETE CASCADE);";

fn svc() -> Binary {
    Binary::new(env!("CARGO_BIN_EXE_svc-server"))
}

/// Figures of a server once a step's work is done.
#[derive(Clone, Copy, Debug)]
struct ResourceSample {
    /// Resident memory in megabytes.
    memory: usize,
    /// Open files and sockets of this process.
    open: usize,
    threads: usize,
    /// Tasks of the runtime that live.
    tasks: usize,
    /// Files of the data directory, and their kilobytes.
    files: usize,
    kilobytes: usize,
}

/// Reads a figure of a sample.
type ReadFigureFn = fn(&ResourceSample) -> usize;

/// A busy server, and who comes by.
struct BusyServer {
    book: GuestBook,
    issuer: StubIssuer,
    /// Provider of payments, and the price of what the page sells.
    provider: FakeStripe,
    price: String,
    backups: TempDir,
}

impl BusyServer {
    async fn start() -> Self {
        let (issuer, provider) = (StubIssuer::start().await, FakeStripe::start().await);
        let builder = TestServer::builder().settings(|settings| {
            settings.providers = vec![provider_settings("acme", &issuer)];
            settings.stripe = Some(provider.settings());
        });
        let fixture = ProjectFixture::on_server(builder.start().await, DDL).await;
        let realtime = json!({ "realtime": true });
        fixture.send(Method::PATCH, "", &realtime).await.expect(200);
        let any = json!({ "anonymous": true });
        let actions = json!([
            { "name": "sign", "sql": "INSERT INTO entries (user_id, words) VALUES (:svc_user_id, :words)" },
            { "name": "note", "sql": "INSERT INTO entries (words) VALUES (:words)" },
            { "name": "count", "sql": "SELECT count(*) AS n FROM entries" },
            { "name": "latest", "sql": "SELECT id, words FROM entries ORDER BY id DESC LIMIT 20" },
            { "name": "tidy", "sql": "DELETE FROM entries WHERE id <= (SELECT max(id) FROM entries) - 200" },
            { "name": "add", "sql": "INSERT INTO photos (file) VALUES (:svc_file)", "files": any },
            { "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file" },
            { "name": "remove", "sql": "DELETE FROM svc_files WHERE id = :file" },
        ]);
        fixture.put(&actions).await.expect(200);
        let price =
            json!({ "product_name": "Book", "label": "PDF", "amount": 900, "currency": "eur" });
        let path = format!("/{}/payments/catalog", fixture.project);
        let price = fixture.owner.post(&fixture.server, &path, &price).await;
        Self {
            price: text(&price.expect(201).json()["id"]),
            book: GuestBook::from_fixture(fixture).await,
            issuer,
            provider,
            backups: TempDir::new().unwrap(),
        }
    }

    fn fixture(&self) -> &ProjectFixture {
        &self.book.fixture
    }

    fn server(&self) -> &TestServer {
        &self.fixture().server
    }

    /// Sends what four hours bring.
    async fn work(&self, step: usize) {
        self.share_pages(step).await;
        self.call_actions(step).await;
        self.listen_and_meet().await;
        self.sign_in_and_out().await;
        self.buy(step).await;
        self.bring_files(step).await;
        self.release(step).await;
        self.build_and_end(step).await;
        self.go_wrong().await;
    }

    async fn share_pages(&self, step: usize) {
        let server = self.server();
        for (kind, content) in [
            ("markdown", format!("# Page {step}")),
            ("html", format!("<p>Page</p> {step}")),
            ("csv", format!("a,b\n1,2 {step}")),
            ("json", format!("{{\"step\": {step}}}")),
            ("mermaid", format!("graph TD; a-->b{step}")),
        ] {
            let page = json!({ "type": kind, "content": content });
            let share = server.deploy(&page).await;
            let slug = text(&share["slug"]);
            server.get(&format!("/{slug}")).answer().await.expect(200);
            if kind == "csv" {
                let path = format!("/api/v1/deploy/{}", text(&share["id"]));
                let delete = server.request(Method::DELETE, &path);
                let token = text(&share["delete_token"]);
                let deleted = delete.bearer_auth(token).answer().await;
                assert!(deleted.status < 300, "{deleted:?}");
            }
        }
        let once = json!({ "content": format!("read once {step}"), "one_time": true });
        let once = server.publish_slug(&once).await;
        let opened = server.post(&format!("/{once}")).answer().await;
        opened.expect(200);
        let arguments = json!({ "type": "markdown", "content": format!("of an agent {step}") });
        let call = json!({
            "jsonrpc": "2.0", "id": step, "method": "tools/call",
            "params": { "name": "deploy_asset", "arguments": arguments },
        });
        server.json("/mcp", &call).answer().await.expect(200);
    }

    async fn call_actions(&self, step: usize) {
        let fixture = self.fixture();
        for number in 0..30 {
            let words = json!({ "words": format!("step {step}, call {number}") });
            fixture.call_ok("note", &words).await;
            fixture.call_ok("latest", &json!({})).await;
            self.server().get("/room").answer().await.expect(200);
        }
        fixture.call_ok("tidy", &json!({})).await;
        let sql = "SELECT count(*) FROM entries WHERE words LIKE '%call%'";
        fixture.query(sql, &json!({})).await.expect(200);
    }

    /// Visitors follow a query, and meet in a room.
    async fn listen_and_meet(&self) {
        let server = self.server();
        let (mut listeners, mut members) = (Vec::new(), Vec::new());
        for number in 0..6 {
            let mut listener = server.socket("/room/api/live", &[]).await.unwrap();
            let id = number.to_string();
            let subscribe =
                json!({ "v": 1, "type": "subscribe", "id": id, "action": "count", "params": {} });
            listener.send(subscribe.to_string()).await;
            listener.envelope().await;
            listeners.push(listener);
            let member = server.socket("/room/ws?room=hall", &[]).await;
            let mut member = member.unwrap();
            member.wait_for_envelope("svc:welcome").await;
            members.push(member);
        }
        let words = json!({ "words": "heard" });
        self.fixture().call_ok("note", &words).await;
        members[0].send_envelope("hello", json!(1)).await;
        for member in &mut members[1..] {
            member.wait_for_envelope("hello").await;
        }
        for listener in &mut listeners {
            listener.envelope().await;
        }
        for socket in listeners.into_iter().chain(members) {
            socket.close().await;
        }
    }

    async fn sign_in_and_out(&self) {
        let now = self.server().server().app().clock.now().0 / 1000;
        self.issuer.change(|issuer| issuer.now = now);
        let mut visitor = self.book.browser();
        self.book.sign_in_with_issuer(&mut visitor, "acme").await;
        let sign = json!({ "action": "sign", "params": { "words": "it was me" } });
        self.book.call(&mut visitor, &sign).await.expect(200);
        let own = HeaderMap::from_iter([(header::ORIGIN, self.book.origin.parse().unwrap())]);
        let out = self.book.url("/auth/logout");
        let out = visitor.send_request(Method::POST, &out, own, None).await;
        out.expect(204);
        // One who does not sign out: the session ends by itself.
        let mut visitor = self.book.browser();
        self.book.sign_in_with_issuer(&mut visitor, "acme").await;
        self.issuer.change(|issuer| issuer.requests.clear());
    }

    async fn buy(&self, step: usize) {
        let server = self.server();
        let checkout = server
            .json("/room/payments/checkout", &json!({ "price": self.price }))
            .header(header::ACCEPT, "application/json");
        let begun = checkout.answer().await.expect(200).json();
        let url = text(&begun["url"]);
        let paid = fake_stripe::checkout(url.rsplit('/').next().unwrap(), "paid");
        let now = server.server().app().clock.now();
        let kind = "checkout.session.completed";
        let event = fake_stripe::event(&format!("evt_{step}"), kind, now.0 / 1000, &paid);
        let told =
            fake_stripe::send_webhook(server, event.to_string(), fake_stripe::SECRET, now).await;
        told.expect(200);
        assert!(!self.provider.calls().is_empty());
    }

    /// Visitors upload files, look at them, and take them away.
    async fn bring_files(&self, step: usize) {
        let server = self.server();
        for number in 0..2 {
            let content = format!("file {number} of step {step}").repeat(100);
            let upload = server.post("/room/api/files/add").body(content);
            let file = upload.answer().await.expect(201).json();
            let file = text(&file["file"]["id"]);
            let path = format!("/room/api/files/see/{file}");
            server.get(&path).answer().await.expect(200);
            let file = json!({ "file": file });
            self.fixture().call_ok("remove", &file).await;
        }
    }

    /// Releases a draft, and deletes what was live three releases ago.
    async fn release(&self, step: usize) {
        let fixture = self.fixture();
        let (owner, server) = (&fixture.owner, self.server());
        let path = format!("/{}/frontends/room", fixture.project);
        let revisions = format!("{path}/revisions");
        let list = owner.get(server, &revisions).await.expect(200).json();
        let live = text(&list["active_revision_id"]);
        let draft =
            json!({ "base_revision_id": live, "content": format!("# Room in step {step}") });
        let draft = owner.post(server, &revisions, &draft).await.expect(200);
        let draft = text(&draft.json()["revision"]["revision_id"]);
        let release = json!({ "revision_id": draft, "expected_active_revision_id": live });
        let promoted = owner
            .post(server, &format!("{path}/promote"), &release)
            .await;
        promoted.expect(200);
        let old = list["revisions"].as_array().unwrap().iter().skip(3);
        for revision in old {
            let path = format!("{revisions}/{}", text(&revision["revision_id"]));
            owner.delete(server, &path).await;
        }
    }

    /// Makes a project with a database, a page and a site, and deletes it.
    async fn build_and_end(&self, step: usize) {
        let (owner, server) = (&self.fixture().owner, self.server());
        let project = owner.project(server, "For a while").await;
        let ddl = json!({ "ddl": "CREATE TABLE t (x); INSERT INTO t VALUES (1)" });
        let backend = owner
            .post(server, &format!("/{project}/backend"), &ddl)
            .await;
        backend.expect(201);
        owner.frontend(server, &project, "while").await;
        let files = json!({
            "index.html": { "text": "<p>index</p>" }, "step.txt": { "text": format!("step {step}") },
        });
        let site = json!({ "type": "site", "files": files, "requested_slug": "folder" });
        let made = owner
            .post(server, &format!("/{project}/frontends"), &site)
            .await;
        made.expect(201);
        let file = server.get("/folder/step.txt").answer().await.expect(200);
        assert_eq!(file.text(), format!("step {step}"));
        let query = json!({ "sql": "SELECT x FROM t" });
        let query = owner
            .request(server, Method::POST, "/while/api/query")
            .json(&query);
        query.answer().await.expect(200);
        let deleted = owner.delete(server, &format!("/{project}")).await;
        assert!(deleted.status < 300, "{deleted:?}");
    }

    async fn go_wrong(&self) {
        let server = self.server();
        server.get("/nothing-here").answer().await.expect(404);
        let broken = server.post("/api/v1/deploy").body("{");
        let broken = broken.header(header::CONTENT_TYPE, "application/json");
        assert!(broken.answer().await.status >= 400);
        let unknown = json!({ "action": "unheard_of" });
        self.fixture().call("room", &unknown).await.expect(404);
        self.fixture()
            .query("SELECT FROM", &json!({}))
            .await
            .expect(400);
        server.get_raw("?", "/").await;
    }

    /// Makes a backup of a day, and looks whether everything is in order.
    async fn close_the_day(&self, day: usize) {
        let to = self.backups.path().join(day.to_string());
        let backup = ["backup", to.to_str().unwrap(), "--json"];
        let made = self.server().command(&svc(), &backup).await;
        assert!(made.success, "{made:?}");
        fs::remove_dir_all(to).unwrap();
        let found = self.server().command(&svc(), &["check", "--json"]).await;
        assert!(found.success, "{found:?}");
    }

    /// Moves both clocks on by a step, and waits until what was due is done.
    async fn pass_time(&self) {
        self.server().advance(STEP.as_secs());
        tokio::time::pause();
        tokio::time::advance(STEP).await;
        tokio::time::resume();
        // Sweeps run once a second, and the collector comes after them. Nothing tells that they found nothing more.
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }

    fn measure(&self) -> ResourceSample {
        let (files, bytes) = count_files(self.server().data());
        let resources = Resources::of_this_process();
        let tasks = Handle::current().metrics().num_alive_tasks();
        ResourceSample {
            memory: resources.memory as usize / 1024,
            open: resources.files,
            threads: resources.threads,
            tasks,
            files,
            kilobytes: bytes / 1024,
        }
    }

    async fn slowest_call(&self) -> Duration {
        let mut slowest = Duration::ZERO;
        for _ in 0..100 {
            let begin = Instant::now();
            self.fixture().call_ok("count", &Value::Null).await;
            slowest = slowest.max(begin.elapsed());
        }
        slowest
    }
}

/// Counts the files below a directory, and their bytes.
fn count_files(directory: &Path) -> (usize, usize) {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let Ok(about) = entry.metadata() else {
            continue;
        };
        let (more, length) = match about.is_dir() {
            true => count_files(&entry.path()),
            false => (1, about.len() as usize),
        };
        (files, bytes) = (files + more, bytes + length);
    }
    (files, bytes)
}

/// Checks that a server holds no more in the last quarter of a run than in the one before, but for rows that are kept.
fn check_samples(samples: &[ResourceSample]) {
    let quarters: Vec<_> = samples.chunks(STEPS / 4).collect();
    let most = |quarter: usize, of: ReadFigureFn| {
        let all = quarters[quarter].iter().map(of);
        all.max().unwrap()
    };
    let bounds: [(&str, ReadFigureFn, usize); 6] = [
        ("tasks", |one| one.tasks, 0),
        ("open files", |one| one.open, 4),
        // Tokio's pool for blocking work grows where the machine is busy; a thread left over by each step would be 42.
        ("threads", |one| one.threads, 32),
        ("files", |one| one.files, 8),
        ("kilobytes of files", |one| one.kilobytes, 1024),
        ("megabytes of memory", |one| one.memory, 12),
    ];
    for (what, of, slack) in bounds {
        let (before, after) = (most(2, of), most(3, of));
        assert!(
            after <= before + slack,
            "{what}: {before} before, {after} after"
        );
    }
}

#[tokio::test]
async fn four_weeks_leave_nothing_over() {
    let server = BusyServer::start().await;
    let mut samples = Vec::new();
    for step in 0..STEPS {
        server.work(step).await;
        if step % STEPS_OF_A_DAY == 0 {
            server.close_the_day(step / STEPS_OF_A_DAY).await;
        }
        server.pass_time().await;
        let sample = server.measure();
        let call = server.slowest_call().await;
        println!("{step}: {sample:?}, slowest of 100 calls {call:?}");
        samples.push(sample);
    }
    check_samples(&samples);
}
