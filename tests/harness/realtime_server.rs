//! A server process with a page `room` whose backend has rooms and live queries, for tests that count what it takes.

use std::net::{Ipv4Addr, TcpListener};

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answer::ReadAnswer;
use crate::process::{Binary, Process};
use crate::random_frames::send_random_frames;
use crate::resources::Resources;
use crate::wait::wait_until;

/// Limits that crowds do not meet, but for those that are about them.
const LIMITS: &str = "[limits]
op_burst = 1000000
op_deployment_burst = 1000000
owner_burst = 1000000
sockets_per_ip = 100000
";

/// Tables of the page's backend.
const SCHEMA: &str = "CREATE TABLE votes (id INTEGER PRIMARY KEY, choice TEXT NOT NULL)";
const ACTIONS: [(&str, &str); 2] = [
    ("total", "SELECT count(*) AS n FROM votes"),
    ("vote", "INSERT INTO votes (choice) VALUES (:choice)"),
];

/// Server with the page.
#[derive(Debug)]
pub struct RealtimeServer {
    /// Process that serves.
    pub process: Process,
    metrics: String,
    _data: TempDir,
}

impl RealtimeServer {
    /// Starts it, with more lines in its `[limits]` and more actions.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(binary: Binary, limits: &str, actions: &[(&str, &str)]) -> Self {
        let data = TempDir::new().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ops = listener.local_addr().unwrap();
        // Nobody has it until the server does.
        drop(listener);
        let config = data.path().join("svc.toml");
        std::fs::write(&config, format!("ops_listen = \"{ops}\"\n{LIMITS}{limits}")).unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = binary.run(data.path(), &create).await.json();
        let credential = made["credential"].as_str().unwrap();
        let arguments = ["--config", config.to_str().unwrap()];
        let server = Self {
            process: binary.serve(data.path(), &arguments).await,
            metrics: format!("http://{ops}/metrics"),
            _data: data,
        };
        server.create_page(credential, actions).await;
        server
    }

    async fn create_page(&self, credential: &str, actions: &[(&str, &str)]) {
        let send = async |method: Method, path: &str, body: Value| {
            let url = self.process.url(&format!("/api/v1/projects{path}"));
            let request = self.process.client().request(method, url);
            let answer = request.bearer_auth(credential).json(&body).answer().await;
            assert!(answer.status < 300, "{path}: {}", answer.text());
            answer.json()
        };
        let project = send(Method::POST, "", json!({ "name": "Hall" })).await;
        let project = format!("/{}", project["id"].as_str().unwrap());
        let actions = ACTIONS.iter().chain(actions);
        let actions = actions.map(|(name, sql)| json!({ "name": name, "sql": sql }));
        let actions: Vec<_> = actions.collect();
        let page = json!({ "type": "html", "content": "x", "requested_slug": "room" });
        let backend = json!({ "ddl": SCHEMA, "realtime": true });
        send(Method::POST, &format!("{project}/backend"), backend).await;
        send(Method::POST, &format!("{project}/frontends"), page).await;
        let actions = json!({ "actions": actions });
        send(Method::PUT, &format!("{project}/backend/actions"), actions).await;
    }

    /// A number that operators are told.
    ///
    /// # Panics
    /// When there is none of that name.
    pub async fn metric(&self, name: &str) -> u64 {
        let answer = self.process.client().get(&self.metrics).answer().await;
        let numbers = answer.text();
        let start = format!("{name} ");
        let line = numbers.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("no {name}: {numbers}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Votes that were cast.
    ///
    /// # Panics
    /// When that is refused.
    pub async fn cast_vote(&self) {
        let vote = json!({ "action": "vote", "params": { "choice": "tea" } });
        self.process.json("/room/api/op", &vote).await.expect(200);
    }

    /// Waits until nobody is there; answers what the server has then.
    pub async fn wait_until_idle(&self) -> Resources {
        let nobody = async || {
            let left = [
                self.metric("svc_room_sockets").await,
                self.metric("svc_rooms").await,
                self.metric("svc_live_connections").await,
                self.metric("svc_live_subscriptions").await,
                self.metric("svc_live_queries").await,
                self.metric("svc_live_bytes").await,
            ];
            (left == [0; 6]).then_some(())
        };
        wait_until("the sockets to be gone", nobody).await;
        Resources::of_process(&self.process)
    }

    /// Throws frames over so many connections to its rooms and live queries, and looks at what is left of them: no socket, no
    /// open file, at most `slack` kilobytes, and nothing in the log.
    ///
    /// # Panics
    /// When something is.
    pub async fn assert_survives_random_frames(&self, connections: usize, slack: u64) {
        let address = self.process.address();
        let thrown = async |connections: usize, seed: u64| {
            let paths = ["/room/ws?room=a", "/room/api/live", "/room/ws?room=b"];
            let throwing = move || send_random_frames(address, &paths, connections, seed);
            tokio::task::spawn_blocking(throwing).await.unwrap();
            self.wait_until_idle().await
        };
        // What is made once is made by these.
        let before = thrown(connections / 4, 1).await;
        let after = thrown(connections, 2).await;
        let closed = async || {
            let files = Resources::of_process(&self.process).files;
            // A database's files may be open for a while.
            (files <= before.files + 4).then_some(())
        };
        wait_until("the files to be closed", closed).await;
        let grown = after.memory.saturating_sub(before.memory);
        assert!(grown <= slack, "{grown} KB more after {connections}");
        let said = self.process.stderr();
        assert!(
            !said.contains("panicked") && !said.contains("ERROR"),
            "{said}"
        );
        self.cast_vote().await;
    }
}
