//! Clients that go on whatever happens, each request at a random node: those of rows here, the others beside.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use svc_tests::{Answer, SeededRng};
use tokio::task::JoinSet;

use super::client_context::ClientContext;
use super::record::Outcome;
use super::{edits, keys, pages};

const WRITERS: u64 = 8;
const READERS: u64 = 3;
const PUBLISHERS: u64 = 2;
const VIEWERS: u64 = 3;
/// Pause after a write and a read.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads what an answer to a write says, if it is one that may be given.
fn outcome(answer: Option<&Answer>) -> Option<Outcome> {
    let Some(answer) = answer else {
        return Some(Outcome::Unknown);
    };
    match answer.status {
        200 => Some(Outcome::Acknowledged),
        503 if answer.json()["code"] == "interrupted" => Some(Outcome::Unknown),
        503 => Some(Outcome::Refused),
        _ => None,
    }
}

async fn write(context: Arc<ClientContext>, writer: u64, mut rng: SeededRng) {
    let mut number = 0;
    while context.goes_on() {
        let entry = (writer, number);
        let without_standbys = context.without_standbys();
        context.record().rows.insert(entry, Outcome::Unknown);
        let params = json!({ "writer": writer, "number": number });
        let answer = context.call(&mut rng, "add", &params).await;
        match outcome(answer.as_ref()) {
            Some(outcome) => {
                let mut record = context.record();
                record.rows.insert(entry, outcome);
                if outcome == Outcome::Acknowledged
                    && without_standbys.is_some()
                    && without_standbys == context.without_standbys()
                {
                    record.fault(format!("{entry:?} was acknowledged without standbys"));
                }
            }
            None => context.record().fault(format!("{entry:?}: {answer:?}")),
        }
        number += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn read_rows(context: Arc<ClientContext>, mut rng: SeededRng) {
    while context.goes_on() {
        let writer = rng.draw() % WRITERS;
        let (first, expected) = context.record().expected(writer);
        let params = json!({ "writer": writer, "first": first });
        let answer = context.call(&mut rng, "written", &params).await;
        match answer.as_ref().map_or(503, |answer| answer.status) {
            200 => {
                let answer = answer.unwrap().json();
                let rows = answer["rows"].as_array().unwrap();
                let numbers = rows.iter().map(|row| row["number"].as_u64().unwrap());
                let numbers: Vec<u64> = numbers.collect();
                context.record().note_read(writer, &expected, &numbers);
            }
            503 => {}
            _ => context.record().fault(format!("a read: {answer:?}")),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Clients of all kinds.
#[derive(Debug)]
pub(super) struct Clients {
    context: Arc<ClientContext>,
    tasks: JoinSet<()>,
}

impl Clients {
    pub(super) fn start(context: &Arc<ClientContext>, seed: u64) -> Self {
        let mut tasks = JoinSet::new();
        let mut number = seed;
        let mut next = || {
            number = number.wrapping_add(1);
            (Arc::clone(context), SeededRng::new(number))
        };
        for writer in 0..WRITERS {
            let (context, rng) = next();
            tasks.spawn(write(context, writer, rng));
        }
        for _ in 0..READERS {
            let (context, rng) = next();
            tasks.spawn(read_rows(context, rng));
        }
        for publisher in 0..PUBLISHERS {
            let (context, rng) = next();
            tasks.spawn(pages::publish(context, publisher, rng));
        }
        for _ in 0..VIEWERS {
            let (context, rng) = next();
            tasks.spawn(pages::view(context, rng));
            let (context, rng) = next();
            tasks.spawn(edits::view(context, rng));
        }
        let (of_burner, rng) = next();
        tasks.spawn(pages::burn(of_burner, rng));
        let (of_race, rng) = next();
        tasks.spawn(pages::race(of_race, rng));
        let (of_edits, rng) = next();
        tasks.spawn(edits::publish(of_edits, rng));
        let (of_keys, rng) = next();
        tasks.spawn(keys::revoke(of_keys, rng));
        Self {
            context: Arc::clone(context),
            tasks,
        }
    }

    /// Ends them, once each has its answer.
    pub(super) async fn stop(self) {
        self.context.stop();
        self.tasks.join_all().await;
    }
}
