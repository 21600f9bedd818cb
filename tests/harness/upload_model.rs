//! Files of visitors against a model: random uploads, ends, restores and restarts, after which exactly the files of the rows are there.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use svc::app::SharedApp;
use svc::workspaces::Plan;
use svc_base::clock::Timestamp;

use crate::answer::{Answer, ReadAnswer};
use crate::seeded_rng::SeededRng;
use crate::server::{NOW, TestServer};

/// Contents that files have. The last of them are of several objects.
const CONTENTS: usize = 20;
const LARGE_CONTENTS: usize = 2;
/// Files that are there at once.
const FILES: usize = 12;
/// Moments of the past that may be restored.
const MOMENTS: usize = 30;
/// Seconds after which nothing brings a file back that has ended.
const HISTORY_SECONDS: u64 = 9 * 24 * 3600;
/// Time after which the collector takes what nobody names.
const COLLECTION_GRACE_SECONDS: u64 = 3600;
/// Steps between two looks at everything, and between two restarts of the server, about.
const STEPS_PER_CHECK: usize = 50;
const STEPS_PER_RESTART: usize = 250;

/// Contents of files by their ids.
type Files = BTreeMap<String, usize>;

/// A server, and what must be true of it.
#[derive(Debug)]
struct UploadModel {
    server: Option<TestServer>,
    credential: String,
    project: String,
    random: SeededRng,
    /// Seconds since the start.
    now: u64,
    files: Files,
    /// Files at moments of the past.
    moments: Vec<(u64, Files)>,
}

/// Returns the bytes of a content.
fn content(number: usize) -> Vec<u8> {
    let line = format!("content {number}\n");
    let times = match number >= CONTENTS - LARGE_CONTENTS {
        true => 150_000,
        false => 1 + number * 50,
    };
    line.repeat(times).into_bytes()
}

/// Takes so many random steps, and looks at everything now and then: no file is lost, and none is left over.
///
/// # Panics
/// Where the server differs from the model.
pub async fn run_upload_model(seed: u64, steps: usize) {
    let builder = TestServer::builder().limits(|limits| {
        limits.upload_day_bytes = 1 << 40;
        limits.op_burst = 1_000_000;
    });
    let mut model = UploadModel::new(builder.start().await, seed).await;
    let objects = model.settle().await;
    for step in 1..=steps {
        let follows = model.random.below(3) == 0;
        let app = model.app();
        let follow = async {
            if follows {
                app.visitor_files.follow_changes().await.unwrap();
                app.files.sweep().await.unwrap();
                app.collector.collect().await.unwrap();
            }
        };
        tokio::join!(Box::pin(model.step()), follow);
        drop(app);
        if model.random.below(STEPS_PER_RESTART) == 0 {
            let server = model.server.take().expect("it runs");
            model.server = Some(server.restart().await);
        }
        if step % STEPS_PER_CHECK == 0 {
            model.check().await;
        }
    }
    model.check().await;
    model.end_everything(objects).await;
}

impl UploadModel {
    async fn new(server: TestServer, seed: u64) -> Self {
        let workspaces = &server.server().app().workspaces;
        let made = workspaces.create("acme", Plan::Pro).await.unwrap();
        let mut model = Self {
            server: Some(server),
            credential: made.credential,
            project: String::new(),
            random: SeededRng::new(seed),
            now: 0,
            files: Files::new(),
            moments: Vec::new(),
        };
        let made = model
            .send(Method::POST, "", json!({ "name": "House" }))
            .await;
        let id = made.expect(201).json()["id"].as_str().unwrap().to_owned();
        model.project = format!("/{id}");
        let ddl = "CREATE TABLE photos (id INTEGER PRIMARY KEY, file TEXT NOT NULL REFERENCES svc_files(id) ON DELETE CASCADE);";
        let made = model
            .send(Method::POST, "/backend", json!({ "ddl": ddl }))
            .await;
        made.expect(201);
        let any = json!({ "anonymous": true });
        let actions = json!({ "actions": [
            { "name": "add", "sql": "INSERT INTO photos (file) VALUES (:svc_file)", "files": any },
            { "name": "full", "sql": "INSERT INTO photos (file) SELECT :svc_file WHERE 0", "files": any },
            { "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file" },
            { "name": "remove", "sql": "DELETE FROM svc_files WHERE id = :file" },
        ] });
        let made = model.send(Method::PUT, "/backend/actions", actions).await;
        made.expect(200);
        let page = json!({ "type": "markdown", "content": "# One", "requested_slug": "room" });
        model
            .send(Method::POST, "/frontends", page)
            .await
            .expect(201);
        model.remember();
        model
    }

    fn server(&self) -> &TestServer {
        self.server.as_ref().expect("it runs")
    }

    fn app(&self) -> SharedApp {
        self.server().server().app().clone()
    }

    /// Sends a request of the owner's below the project.
    async fn send(&self, method: Method, below: &str, body: Value) -> Answer {
        let path = format!("/api/v1/projects{}{below}", self.project);
        let request = self.server().request(method.clone(), &path);
        let request = request.bearer_auth(&self.credential);
        match method {
            Method::GET | Method::DELETE => request.answer().await,
            _ => request.json(&body).answer().await,
        }
    }

    async fn upload(&self, action: &str, content: Vec<u8>) -> Answer {
        let path = format!("/room/api/files/{action}");
        self.server().post(&path).body(content).answer().await
    }

    fn advance(&mut self, seconds: u64) {
        self.server().advance(seconds);
        self.now += seconds;
    }

    /// Writes down what is there at this moment, which is over then.
    fn remember(&mut self) {
        self.moments.push((self.now, self.files.clone()));
        if self.moments.len() > MOMENTS {
            self.moments.remove(0);
        }
        self.advance(1);
    }

    /// Takes one random step.
    async fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.add().await,
            45..55 => {
                let number = self.random.below(CONTENTS);
                let refused = self.upload("full", content(number)).await;
                refused.problem(403, "upload_refused");
            }
            55..80 => self.remove().await,
            80..92 => self.restore().await,
            _ => {
                let seconds = self.random.below(600);
                self.advance(seconds as u64);
            }
        }
    }

    async fn add(&mut self) {
        if self.files.len() >= FILES {
            return;
        }
        let number = self.random.below(CONTENTS);
        let made = self.upload("add", content(number)).await;
        let made = made.expect(201).json();
        let id = made["file"]["id"].as_str().unwrap().to_owned();
        self.files.insert(id, number);
        self.remember();
    }

    /// Ends a file, by an action or by the owner.
    async fn remove(&mut self) {
        let ids: Vec<_> = self.files.keys().cloned().collect();
        if ids.is_empty() {
            return;
        }
        let id = &ids[self.random.below(ids.len())];
        match self.random.below(2) {
            0 => {
                let call = json!({ "action": "remove", "params": { "file": id } });
                let called = self.server().json("/room/api/op", &call).answer().await;
                called.expect(200);
            }
            _ => {
                let below = format!("/files/{id}");
                let deleted = self.send(Method::DELETE, &below, Value::Null).await;
                deleted.expect(204);
            }
        }
        self.files.remove(id);
        self.remember();
    }

    /// Brings the rows of a moment back.
    async fn restore(&mut self) {
        let at = self.random.below(self.moments.len());
        let (seconds, files) = self.moments[at].clone();
        let passed = i64::try_from(seconds * 1000).unwrap();
        let time = Timestamp(NOW.0 + passed).to_string();
        let restored = self
            .send(Method::POST, "/backend/restore", json!({ "at": time }))
            .await;
        restored.expect(200);
        self.files = files;
        self.remember();
    }

    /// Compares the files with those of the model.
    async fn check(&self) {
        let listed = self.send(Method::GET, "/files", Value::Null).await;
        let listed = listed.expect(200).json();
        let listed = listed["files"].as_array().unwrap().iter();
        let mut listed: Vec<_> = listed.map(|file| file["id"].as_str().unwrap()).collect();
        listed.sort_unstable();
        let wanted: Vec<_> = self.files.keys().map(String::as_str).collect();
        assert_eq!(listed, wanted);
        for (id, number) in &self.files {
            let path = format!("/room/api/files/see/{id}");
            let answer = self.server().get(&path).answer().await;
            assert_eq!(answer.status, 200, "{id}: {}", answer.text());
            assert!(answer.body == content(*number), "{id}");
        }
    }

    /// Has all that has ended be gone; returns the number of objects.
    async fn settle(&mut self) -> usize {
        let app = self.app();
        app.visitor_files.follow_all().await.unwrap();
        self.advance(HISTORY_SECONDS);
        app.visitor_files.expire().await.unwrap();
        for _ in 0..2 {
            app.files.sweep().await.unwrap();
            self.advance(COLLECTION_GRACE_SECONDS);
            app.collector.collect().await.unwrap();
        }
        self.moments = vec![(self.now, self.files.clone())];
        self.advance(1);
        app.content.list().await.unwrap().0.len()
    }

    /// Ends all files, after which no object of theirs is left.
    async fn end_everything(&mut self, objects: usize) {
        for id in self.files.keys() {
            let below = format!("/files/{id}");
            let deleted = self.send(Method::DELETE, &below, Value::Null).await;
            deleted.expect(204);
        }
        self.files.clear();
        assert_eq!(self.settle().await, objects);
    }
}
