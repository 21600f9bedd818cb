//! Readers at all nodes who want a one-time page: one of them gets it, and at most one where a node dies meanwhile.

use std::time::{Duration, Instant};

use http::Method;
use reqwest::RequestBuilder;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::answer::ReadAnswer as _;
use crate::process::Binary;
use crate::seeded_rng::SeededRng;
use crate::three_nodes::{NODES, ThreeNodes};
use crate::wait::DEADLINE;

/// Readers at once.
const READERS: usize = 24;
/// Rounds of which one has a kill.
const KILL_EVERY: usize = 4;
/// Most milliseconds from the first request of the readers to a kill.
const KILL_MILLIS: usize = 40;
/// Pause after a refusal.
const PAUSE: Duration = Duration::from_millis(50);

/// Knowledge of a reader about the page at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It has the page.
    Got,
    /// There is no such page.
    Gone,
    /// The answer is lost.
    Unknown,
}

/// Finds what is wrong with what all readers of a page know.
pub fn opening_fault(opened: &[Opened], is_killed: bool) -> Option<String> {
    let got = opened.iter().filter(|it| **it == Opened::Got).count();
    let is_right = if is_killed { got <= 1 } else { got == 1 };
    (!is_right).then(|| format!("{got} readers got it, killed: {is_killed}, {opened:?}"))
}

/// Publishes one-time pages, each for readers at all nodes, and kills a node under the readers of some.
///
/// # Panics
/// When two readers get a page, or nobody does although nobody died.
pub async fn open_one_time_pages(binary: Binary, rounds: usize, seed: u64) {
    let mut nodes = ThreeNodes::start(binary, "").await;
    let mut rng = SeededRng::new(seed);
    for round in 0..rounds {
        let name = format!("once-{round}");
        let content = format!("<p>of {name}</p>");
        let page = json!({ "content": content, "name": name, "one_time": true });
        let slug = nodes.publish(&mut rng, &page, &name).await;
        assert_eq!(slug, name, "published twice");
        let mut readers = JoinSet::new();
        for _ in 0..READERS {
            readers.spawn(open(&nodes, &name, &mut rng));
        }
        let is_killed = round % KILL_EVERY == KILL_EVERY - 1;
        if is_killed {
            let wait = rng.below(KILL_MILLIS) as u64;
            sleep(Duration::from_millis(wait)).await;
            nodes.kill(rng.below(NODES)).await;
        }
        let mut opened = readers.join_all().await;
        nodes.restart().await;
        // Somebody comes late, and gets it if nobody did.
        opened.push(open(&nodes, &name, &mut rng).await);
        let fault = opening_fault(&opened, is_killed);
        assert_eq!(fault, None, "{name}");
        for node in nodes.living() {
            let gone = nodes.request(node, Method::GET, &format!("/{name}"));
            let gone = gone.answer().await;
            assert!(matches!(gone.status, 404 | 503), "{name}: {gone:?}");
        }
    }
}

/// Opens a page at random nodes of those that live now, until one says whether it is there.
fn open(
    nodes: &ThreeNodes,
    name: &str,
    rng: &mut SeededRng,
) -> impl Future<Output = Opened> + Send + use<> {
    let (path, text) = (format!("/{name}"), format!("of {name}"));
    let living = nodes.living().into_iter();
    let requests: Vec<RequestBuilder> = living
        .map(|node| nodes.request(node, Method::POST, &path))
        .collect();
    let mut rng = SeededRng::new(rng.draw());
    async move {
        let started = Instant::now();
        while started.elapsed() < DEADLINE {
            let request = requests[rng.below(requests.len())].try_clone().unwrap();
            let Some(answer) = request.try_answer().await else {
                return Opened::Unknown;
            };
            match answer.status {
                200 => {
                    assert!(answer.text().contains(&text), "{}", answer.text());
                    return Opened::Got;
                }
                404 => return Opened::Gone,
                503 if answer.json()["code"] == "interrupted" => return Opened::Unknown,
                503 => sleep(PAUSE).await,
                _ => panic!("{path}: {answer:?}"),
            }
        }
        panic!("nobody says whether {path} is there");
    }
}
