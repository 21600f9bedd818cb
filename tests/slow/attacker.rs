//! One attacker: calls, queries, migrations, pages, malformed bodies and bytes that are no request, at random.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc_tests::SeededRng;
use tokio::time::Instant;

/// Work of each call within a row, of a number that is 1 at first and then 50,000.
pub(crate) const EXPRESSIONS: [(&str, usize, &str); 8] = [
    (
        "unhex",
        1,
        "length(unhex(printf('%.*c', :n, '!'), printf('%.*c', :n, 'z') || '!'))",
    ),
    (
        "instr",
        200,
        "instr(printf('%.*c', :n, 'a'), printf('%.*c', :n / 2, 'a') || 'b')",
    ),
    (
        "replace",
        200,
        "length(replace(printf('%.*c', :n, 'a'), 'aa', 'b'))",
    ),
    (
        "like",
        200,
        "(printf('%.*c', :n, 'a') LIKE '%a_a_a_a_a_a%b')",
    ),
    (
        "glob",
        200,
        "(printf('%.*c', :n, 'a') GLOB '*a?a?a?a?a?a*b')",
    ),
    ("json", 100, "json_valid(printf('%.*c', :n, '['))"),
    ("number", 300, "(printf('0.%.*c', :n, '7') + 0)"),
    (
        "count",
        1,
        "(WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c) SELECT sum(i) FROM c LIMIT :n)",
    ),
];

/// An owner's project with a backend and a page.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) credential: String,
    pub(crate) project: String,
    pub(crate) page: &'static str,
}

/// Texts that are published and posted.
#[derive(Debug)]
pub(crate) struct AttackSources {
    pub(crate) contents: Vec<Value>,
    pub(crate) bodies: Vec<Value>,
}

/// Where one attacker stands: the server of now, and luck of its own.
pub(crate) struct Attacker {
    pub(crate) client: reqwest::Client,
    pub(crate) address: SocketAddr,
    pub(crate) tenant: Tenant,
    pub(crate) numbers: SeededRng,
    /// Answers that no attack may cause, by what was asked.
    pub(crate) faults: Arc<Mutex<Vec<String>>>,
}

impl Attacker {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.numbers.draw() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A text with some of its bytes changed.
    fn change(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len().max(1));
            let new = u8::try_from(self.below(256)).unwrap();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = new;
            }
        }
        bytes
    }

    /// Sends a body; a 500, or a 503 that does not say when to come again, is a fault of the server's.
    async fn send_request(&self, method: Method, path: &str, owner: bool, body: Vec<u8>) {
        let url = format!("http://{}{path}", self.address);
        let mut request = self.client.request(method.clone(), url).body(body);
        request = request.header("content-type", "application/json");
        if owner {
            request = request.bearer_auth(&self.tenant.credential);
        }
        // What a kill cuts off, and what a server closes early, has no answer.
        let Ok(response) = request.send().await else {
            return;
        };
        let status = response.status().as_u16();
        let again = response.headers().contains_key("retry-after");
        let said = response.text().await.unwrap_or_default();
        if status >= 500 && !(status == 503 && again) && !said.contains("query_timeout") {
            self.faults
                .lock()
                .unwrap()
                .push(format!("{method} {path}: {status} {said}"));
        }
    }

    async fn call(&mut self) {
        let (name, _, _) = *self.pick(&EXPRESSIONS);
        let n = *self.pick(&[1, 1, 50_000, 999_999_999, -1]);
        let call = json!({ "action": name, "params": { "n": n } }).to_string();
        let page = self.tenant.page;
        self.send_request(
            Method::POST,
            &format!("/{page}/api/op"),
            false,
            call.into_bytes(),
        )
        .await;
    }

    async fn query(&mut self) {
        let (_, times, part) = *self.pick(&EXPRESSIONS);
        let sql = format!(
            "SELECT {} AS x",
            vec![part; times].join(" + ").replace(":n", "50000")
        );
        let body = json!({ "sql": sql, "params": {} }).to_string();
        let body = self.change(&body);
        let path = format!("/api/v1/projects{}/backend/query", self.tenant.project);
        self.send_request(Method::POST, &path, true, body).await;
    }

    async fn migrate(&mut self) {
        let number = self.below(1_000_000);
        let chain = vec!["instr(a, a || 'b')"; 60].join(" + ");
        let ddl = match self.below(4) {
            0 => format!("CREATE TABLE t{number} (a TEXT, CHECK ({chain} >= 0))"),
            1 => format!("CREATE VIEW v{number} AS SELECT {chain} AS n FROM bait"),
            2 => "DROP TABLE bait".to_owned(),
            _ => format!(
                "INSERT INTO bait SELECT printf('%.*c', 900000, 'x') FROM json_each('[1,2,3,{number}]')"
            ),
        };
        let body = json!({ "ddl": ddl }).to_string();
        let body = self.change(&body);
        let path = format!("/api/v1/projects{}/backend", self.tenant.project);
        self.send_request(Method::PATCH, &path, true, body).await;
    }

    async fn publish(&mut self, sources: &[Value]) {
        let source = self.pick(sources).clone();
        let mut content = String::new();
        for part in source["parts"].as_array().unwrap() {
            let times = usize::try_from(part[1].as_u64().unwrap()).unwrap();
            content += &part[0].as_str().unwrap().repeat(times);
        }
        let one_time = self.below(3) == 0;
        let body = json!({ "type": source["type"], "content": content, "one_time": one_time });
        let body = self.change(&body.to_string());
        self.send_request(Method::POST, "/api/v1/deploy", false, body)
            .await;
    }

    async fn malform(&mut self, bodies: &[Value]) {
        let body = self.pick(bodies).as_str().unwrap().to_owned();
        let paths = [
            "/api/v1/deploy",
            "/mcp",
            "/none/api/op",
            "/_svc/preview",
            "/api/v1/projects",
            "/{}",
            "/../x",
        ];
        let path = *self.pick(&paths);
        let owner = self.below(2) == 0;
        self.send_request(Method::POST, path, owner, body.into_bytes())
            .await;
    }

    /// Bytes that are no request, and frames that are none, on connections that may just stop.
    fn send_noise(&mut self) {
        let Ok(mut stream) = TcpStream::connect(self.address) else {
            return;
        };
        let (page, host) = (self.tenant.page, self.address);
        let upgrade = |path: &str| {
            format!(
                "GET /{page}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
        };
        let (room, live) = (upgrade("ws?room=a"), upgrade("api/live"));
        let starts = [
            room.as_str(),
            live.as_str(),
            "",
            "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ];
        let start = *self.pick(&starts);
        let noise: Vec<u8> = (0..self.below(4096))
            .map(|_| u8::try_from(self.below(256)).unwrap())
            .collect();
        // The server may have closed already, which is as good an answer as any.
        let written = stream
            .write_all(start.as_bytes())
            .and_then(|()| stream.write_all(&noise));
        if written.is_ok() && start.contains("Upgrade") {
            self.read_upgrade_answer(&mut stream, start.lines().next().unwrap());
        }
    }

    /// Reads how a request for a socket was answered: one that finds none there attacks nothing.
    fn read_upgrade_answer(&self, stream: &mut TcpStream, request: &str) {
        let mut status = [0; 12];
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        // What a kill cuts off has no answer.
        if stream.read_exact(&mut status).is_ok()
            && status != *b"HTTP/1.1 101"
            && status != *b"HTTP/1.1 429"
        {
            let answer = String::from_utf8_lossy(&status);
            let fault = format!("{request}: {answer}");
            self.faults.lock().unwrap().push(fault);
        }
    }

    /// Attacks in every way, at random, until a time.
    pub(crate) async fn attack(mut self, until: Instant, sources: Arc<AttackSources>) {
        while Instant::now() < until {
            match self.below(12) {
                0..4 => self.call().await,
                4..6 => self.query().await,
                6 => self.migrate().await,
                7 => self.publish(&sources.contents).await,
                8..10 => self.malform(&sources.bodies).await,
                _ => self.send_noise(),
            }
        }
    }
}
