//! Several writers at random: every subscriber ends with what a call answers, never hears of something older than before, and
//! waits for no change longer than a second.

mod commit_history;
mod random_schema;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use svc_tests::{SeededRng, Socket, SocketEvent, TestServer};

use super::subscribe;
use crate::project_fixture::ProjectFixture;
use commit_history::{CommitHistory, Label};
use random_schema::RandomSchema;

const WRITERS: u64 = 3;
const STEPS: u64 = 30;
/// How long a change may be on its way.
const DELIVERY_BOUND: Duration = Duration::from_secs(1);

/// Results of a query as a subscriber has heard them.
#[derive(Default)]
struct QueryResults {
    last: Value,
    /// The labels of its results, and when they came.
    labels: Vec<(Instant, Label)>,
}

type ResultsByQuery = Arc<Mutex<HashMap<String, QueryResults>>>;

fn lock_results(heeded: &ResultsByQuery) -> MutexGuard<'_, HashMap<String, QueryResults>> {
    heeded.lock().unwrap()
}

/// Hears results until the end.
async fn record_results(mut socket: Socket, heeded: ResultsByQuery) {
    let mut seqs: HashMap<String, u64> = HashMap::new();
    while let SocketEvent::Text(mut frame) = socket.next().await {
        assert_eq!(frame["type"], "result", "{frame}");
        let id = frame["id"].as_str().unwrap().to_owned();
        let seq = seqs.entry(id.clone()).or_default();
        *seq += 1;
        assert_eq!(frame["seq"], *seq, "{frame}");
        let result = frame["result"].take();
        let mut heeded = lock_results(&heeded);
        let told = heeded.entry(id).or_default();
        assert_ne!(told.last, result, "an equal answer was sent");
        if let Some(label) = Label::from_row(&result["rows"][0]) {
            told.labels.push((Instant::now(), label));
        }
        told.last = result;
    }
}

/// One of those who write at once.
struct Writer {
    fixture: Arc<ProjectFixture>,
    random_schema: Arc<RandomSchema>,
    history: Arc<CommitHistory>,
    numbers: SeededRng,
    /// Whether it also migrates, restores, and changes actions.
    is_owner: bool,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.numbers.draw() % n
    }

    async fn write(mut self) {
        for step in 0..STEPS {
            match self.below(12) {
                0 if self.is_owner => self.migrate(step).await,
                1 if self.is_owner => self.restore(step).await,
                2 if self.is_owner => self.define(step).await,
                _ => self.call().await,
            }
        }
    }

    /// Some writes, and a tick that labels them, in one transaction or one after another.
    async fn call(&mut self) {
        let writes = 1 + self.below(3);
        let mut ops: Vec<Value> = (0..writes)
            .map(|_| self.random_schema.random_write(&mut self.numbers))
            .collect();
        ops.push(json!({ "action": "tick" }));
        let together = self.below(2) == 0;
        let _shared = self.history.lock_shared().await;
        if together {
            // A key that does not hold undoes all of it.
            let answer = self.call_timed(&json!({ "ops": ops })).await;
            if let Some(results) = answer {
                self.history.record_tick(&results["results"][ops.len() - 1]);
            }
        } else {
            for op in &ops {
                let answer = self.call_timed(op).await;
                if let Some(result) = answer.filter(|_| op["action"] == "tick") {
                    self.history.record_tick(&result);
                }
            }
        }
    }

    /// Calls; answers what was done, unless a constraint stands against it.
    async fn call_timed(&self, body: &Value) -> Option<Value> {
        let began = Instant::now();
        let answer = self.fixture.call("room", body).await;
        self.history.record_call_time(began.elapsed());
        match answer.status {
            200 => Some(answer.json()),
            409 => None,
            other => panic!("{other}: {}", answer.text()),
        }
    }

    async fn migrate(&mut self, step: u64) {
        let (table, id) = (self.below(RandomSchema::TABLES), self.below(6));
        let ddl = match self.below(3) {
            0 => {
                format!(
                    "CREATE TABLE extra{step} (a); INSERT OR IGNORE INTO t{table} (id, a) VALUES ({id}, 7)"
                )
            }
            1 => format!("ALTER TABLE t{table} ADD COLUMN extra{step} INTEGER DEFAULT 3"),
            _ => format!("CREATE INDEX extra{step} ON t{table} (a)"),
        };
        let _shared = self.history.lock_shared().await;
        self.fixture.migrate(&ddl).await.expect(200);
    }

    async fn define(&mut self, step: u64) {
        let (table, of) = (
            self.below(RandomSchema::TABLES),
            self.below(RandomSchema::TABLES),
        );
        let sql = format!("SELECT count(*) AS n, {step} AS sum FROM t{of}");
        self.fixture
            .define(&[(&format!("plain{table}"), &sql)])
            .await;
    }

    /// Goes back to some moment, alone, so that what is committed before and after it can be told apart.
    async fn restore(&mut self, step: u64) {
        let path = format!("/{}/backend/history", self.fixture.project);
        let history = self.fixture.owner.get(&self.fixture.server, &path).await;
        let history = history.expect(200).json();
        let moments = history["moments"].as_array().unwrap();
        let at = usize::try_from(self.below(moments.len() as u64)).unwrap();
        let _alone = self.history.lock_exclusive().await;
        let restored = self.fixture.send(Method::POST, "/restore", &moments[at]);
        // One before a migration may not be compatible with what is there now; then nothing happens.
        if restored.await.status != 200 {
            return;
        }
        let label = self.fixture.call_ok("label", &json!({})).await;
        let age = json!({ "epoch": step + 1 });
        self.fixture.call_ok("age", &age).await;
        self.history.record_restore(&label, step + 1);
    }
}

async fn assert_holds_for_seed(seed: u64) {
    let builder = TestServer::builder().system_clock().limits(|limits| {
        limits.live_per_socket = 100;
        limits.messages_per_second = 1_000;
        limits.live_per_second = 20;
    });
    let random_schema = Arc::new(RandomSchema::new(seed));
    let fixture = ProjectFixture::on_server(builder.start().await, &random_schema.schema).await;
    fixture.put(&random_schema.actions()).await.expect(200);
    let (fixture, history) = (Arc::new(fixture), Arc::new(CommitHistory::default()));
    let mut heard = Vec::new();
    for _ in 0..3 {
        let mut socket = fixture.server.socket("/room/api/live", &[]).await.unwrap();
        for (name, params) in &random_schema.queries {
            socket.send(subscribe(name, name, params)).await;
        }
        let heeded = ResultsByQuery::default();
        heard.push(Arc::clone(&heeded));
        tokio::spawn(record_results(socket, heeded));
    }
    let writers = (0..WRITERS).map(|n| Writer {
        fixture: Arc::clone(&fixture),
        random_schema: Arc::clone(&random_schema),
        history: Arc::clone(&history),
        numbers: SeededRng::new(seed * WRITERS + n),
        is_owner: n == 0,
    });
    let writers = writers.map(|writer| tokio::spawn(writer.write()));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    // The last change arrives, and soon.
    tokio::time::sleep(DELIVERY_BOUND).await;
    for (name, params) in &random_schema.queries {
        let called = fixture.call_ok(name, params).await;
        for heeded in &heard {
            let heeded = lock_results(heeded);
            let told = &heeded[name];
            assert_eq!(told.last, called, "seed {seed}: {name}");
            let order = history.check_order(&told.labels);
            let order = order.unwrap_or_else(|why| panic!("seed {seed}: {name}: {why}"));
            if name == "label" {
                history.assert_delivered_within(&order, DELIVERY_BOUND);
            }
        }
    }
    assert!(
        history.tick_count() > STEPS as usize,
        "seed {seed}: too little happened"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_hears_every_change_soon_and_in_its_order() {
    for seed in 1..=5 {
        assert_holds_for_seed(seed).await;
    }
}

/// Votes only grow, so an older answer would show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_hears_of_something_older_than_before() {
    let fixture = super::start_fixture_with(
        TestServer::builder()
            .system_clock()
            .limits(|limits| limits.live_per_second = 1_000),
    )
    .await;
    let mut socket = super::open(&fixture).await;
    super::subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    let fixture = Arc::new(fixture);
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                for _ in 0..50 {
                    fixture
                        .call_ok("vote", &json!({ "poll": 1, "choice": "x" }))
                        .await;
                }
            })
        })
        .collect();
    let mut last = 0;
    while last < 200 {
        let frame = socket.envelope().await;
        let n = frame["result"]["rows"][0]["n"].as_u64().unwrap();
        assert!(n > last, "{n} came after {last}");
        last = n;
    }
    for writer in writers {
        writer.await.unwrap();
    }
}
