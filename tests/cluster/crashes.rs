//! Death of a node at every fault point of its writes, of its bases and of its way to control, with its disk thrown away: the next node
//! has what was acknowledged, once, and goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use futures_util::future::join_all;
use http::Method;
use reqwest::RequestBuilder;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::cluster::{Cluster, ClusterNode, Entry};
use svc_tests::{ReadAnswer, fault_group, fault_points, wait_until};

use crate::founding_crashes::FOUNDING;
use crate::svc;

/// Groups of the fault points on the way of a write to a tenant's database or to the control database.
const WRITE_GROUPS: [&str; 4] = ["commit", "migrate", "provision", "write"];
/// Group of the fault points that only a node of several passes.
pub(crate) const CLUSTER_GROUP: &str = "cluster";
/// Entries that are sent at once.
const AT_ONCE: u64 = 4;

/// Writes of a node besides entries, which lead to a fault point. Deaths are tried in this order: from the first `Fill` on, there is a
/// base to make at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Entries alone.
    Entries,
    /// Quick shares.
    Shares,
    /// Migrations of the backend of `room`.
    Migrations,
    /// Projects with a backend, whose first base is stored.
    Backends,
    /// None: the node finds out by itself that the one before is dead, and no operator tells it.
    Suspicion,
    /// Changes of many pages, until another base is made.
    Fill,
}

/// Lists the deaths that are tried at a point: the way there, and the number of passes.
fn deaths(point: &str) -> &'static [(Way, u32)] {
    match point {
        // A start commits, too.
        "commit.made" => &[(Way::Shares, 1), (Way::Shares, 12)],
        "commit.delivered" => &[(Way::Shares, 12)],
        "write.run" | "write.durable" | "write.told" => &[(Way::Entries, 9)],
        "migrate.applied" | "migrate.committed" | "migrate.recording" => &[(Way::Migrations, 2)],
        "provision.made" | "provision.recorded" => &[(Way::Backends, 2)],
        "cluster.appending" | "cluster.appended" => &[(Way::Entries, 20)],
        "cluster.base_written"
        | "cluster.base_stored"
        | "cluster.base_named"
        | "cluster.trimmed" => &[(Way::Backends, 1), (Way::Fill, 1)],
        "cluster.burying" | "cluster.buried" => &[(Way::Suspicion, 1)],
        "cluster.control_claimed" | "cluster.backend_claimed" => &[(Way::Entries, 1)],
        // Only who founds passes these.
        point if FOUNDING.contains(&point) => &[],
        other => panic!("no death of a node is tried at {other}"),
    }
}

/// A chain of nodes. Each takes over from the one before, and dies; what they have acknowledged is known here.
struct Chain {
    cluster: Cluster,
    /// Deaths so far. A node's number is its writer's.
    faults: Vec<String>,
    /// Number of the next write.
    next: u64,
    sent: BTreeSet<Entry>,
    acknowledged: BTreeSet<Entry>,
    /// Contents of shares, by their slugs.
    shares: BTreeMap<String, String>,
    /// Paths of backends.
    backends: Vec<String>,
    /// Migrations, each with whether it was acknowledged. The last one may not be.
    migrations: Vec<(String, bool)>,
}

impl Chain {
    /// Founds a cluster, and has its first node end.
    async fn begin() -> Self {
        let (cluster, node) = Cluster::with_room(svc()).await;
        node.process.signal(Signal::TERM);
        node.process.wait_for_exit().await;
        Self {
            cluster,
            faults: Vec::new(),
            next: 0,
            sent: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            shares: BTreeMap::new(),
            backends: Vec::new(),
            migrations: Vec::new(),
        }
    }

    /// Has a node take over from the one before, and write until it dies at a point. Its disk is thrown away.
    async fn die_at(&mut self, fault: &str, way: Way) {
        self.faults.push(fault.to_owned());
        let name = format!("n{}", self.faults.len());
        let mut node = match self.cluster.start_to_fault(&name, fault).await {
            Ok(node) => node,
            // It has found control free, and died on its way there.
            Err(said) => {
                assert!(said.starts_with("\"\""), "{fault}: {said}");
                return;
            }
        };
        if way != Way::Suspicion {
            // Nobody waits until the one before is dead for sure. This one may die before it answers.
            self.cluster.promote(&node).await;
        }
        wait_until(&format!("a death at {fault}"), async || {
            self.write(&node, way).await;
            node.process.has_ended().then_some(())
        })
        .await;
        let (status, said) = node.process.wait_for_exit().await;
        let aborted = Some(Signal::ABORT.as_raw());
        assert_eq!(status.signal(), aborted, "{fault}: {status:?} {said}");
        fs::remove_dir_all(node.data).unwrap();
    }

    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Writes some entries, and if that is answered, what leads to a fault point.
    async fn write(&mut self, node: &ClusterNode, way: Way) {
        let writer = self.faults.len() as u64;
        let entries: Vec<Entry> = (0..AT_ONCE).map(|_| (writer, self.take_number())).collect();
        self.sent.extend(&entries);
        let calls = entries.iter().map(|(writer, number)| {
            let params = json!({ "writer": writer, "number": number });
            call(node, &json!({ "action": "add", "params": params }))
        });
        let answers = join_all(calls.map(send)).await;
        let mut is_serving = false;
        for (entry, answer) in entries.into_iter().zip(answers) {
            if let Some((status, said)) = answer {
                assert!(matches!(status, 200 | 503), "{status} {said}");
                if status == 200 {
                    self.acknowledged.insert(entry);
                    is_serving = true;
                }
            }
        }
        if !is_serving {
            return;
        }
        match way {
            Way::Entries | Way::Suspicion => {}
            Way::Shares => self.publish(node).await,
            Way::Migrations => self.migrate(node).await,
            Way::Backends => self.make_backend(node).await,
            Way::Fill => {
                send(call(node, &json!({ "action": "fill" }))).await;
            }
        }
    }

    async fn publish(&mut self, node: &ClusterNode) {
        let content = format!("# Share {}", self.take_number());
        let share = json!({ "type": "markdown", "content": content });
        let url = node.process.url("/api/v1/deploy");
        let request = node.process.client().post(url).json(&share);
        if let Some((201, made)) = send(request).await {
            let slug = made["slug"].as_str().unwrap().to_owned();
            self.shares.insert(slug, content);
        }
    }

    async fn make_backend(&mut self, node: &ClusterNode) {
        let project = json!({ "name": format!("Project {}", self.take_number()) });
        let request = self.cluster.owner_request(node, Method::POST, "");
        let Some((201, made)) = send(request.json(&project)).await else {
            return;
        };
        let path = format!("/{}/backend", made["id"].as_str().unwrap());
        let request = self.cluster.owner_request(node, Method::POST, &path);
        let backend = json!({ "ddl": "CREATE TABLE guests (name)" });
        if let Some((201, _)) = send(request.json(&backend)).await {
            self.backends.push(path);
        }
    }

    /// Sends the last migration again if it was not acknowledged, else another one.
    async fn migrate(&mut self, node: &ClusterNode) {
        if self.migrations.last().is_none_or(|(_, is_done)| *is_done) {
            let number = self.take_number();
            let script =
                format!("CREATE TABLE of_{number} (a); INSERT INTO of_{number} VALUES (1)");
            self.migrations.push((script, false));
        }
        let (script, is_done) = self.migrations.last_mut().unwrap();
        let path = self.cluster.backend();
        let request = self.cluster.owner_request(node, Method::PATCH, &path);
        let answer = send(request.json(&json!({ "ddl": script }))).await;
        *is_done = matches!(answer, Some((200, _)));
    }

    /// Returns the death of the node that was sent an entry.
    fn fault(&self, (writer, _): &Entry) -> &str {
        &self.faults[usize::try_from(*writer).unwrap() - 1]
    }

    /// Starts a node that stays, and asserts that it has everything that was acknowledged, nothing twice, and goes on.
    async fn check(mut self) {
        let node = self.cluster.start("last", true).await;
        // Nobody tells it that the one before is dead.
        node.wait_until_ready().await;
        let found = self.cluster.entries(&node).await;
        let lost = self
            .acknowledged
            .iter()
            .filter(|entry| !found.contains_key(*entry));
        let lost: Vec<_> = lost.map(|entry| (self.fault(entry), entry)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        for (entry, times) in &found {
            assert!(self.sent.contains(entry), "nobody has sent {entry:?}");
            assert_eq!(*times, 1, "{}: {entry:?}", self.fault(entry));
        }
        for (slug, content) in &self.shares {
            let answer = node.process.get(&format!("/{slug}/raw")).await;
            assert_eq!(answer.expect(200).text(), content);
        }
        for path in &self.backends {
            let request = self.cluster.owner_request(&node, Method::GET, path);
            request.answer().await.expect(200);
        }
        // The last one may be in the file and not in its list of migrations: sent first, it is added there.
        for (script, is_done) in self.migrations.iter().rev() {
            let request = self
                .cluster
                .owner_request(&node, Method::PATCH, &self.cluster.backend());
            let again = request.json(&json!({ "ddl": script })).answer().await;
            let again = again.expect(200).json();
            let was_there = again["status"] == "already_applied";
            assert!(was_there || !is_done, "{script}: {again}");
        }
        self.faults.push("no death".to_owned());
        let before = self.acknowledged.len();
        self.write(&node, Way::Entries).await;
        assert!(self.acknowledged.len() > before);
    }
}

/// Returns a call of an action of `room`.
fn call(node: &ClusterNode, call: &Value) -> RequestBuilder {
    let url = node.process.url("/room/api/op");
    node.process.client().post(url).json(call)
}

/// Sends a request; `None` if the node died instead of answering.
async fn send(request: RequestBuilder) -> Option<(u16, Value)> {
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.bytes().await.ok()?;
    Some((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

/// Has a chain of nodes die at every point of some groups.
async fn die_at_points_of(groups: &[&str]) {
    let points = fault_points().into_iter();
    let points: Vec<_> = points
        .filter(|point| groups.contains(&fault_group(point)))
        .collect();
    for group in groups {
        let named = points.iter().any(|point| fault_group(point) == *group);
        assert!(named, "no fault point is on the way of {group}");
    }
    let mut all: Vec<_> = points
        .iter()
        .flat_map(|point| deaths(point).iter().map(move |death| (*death, point)))
        .collect();
    all.sort_by_key(|((way, _), _)| *way);
    let mut chain = Chain::begin().await;
    for ((way, passes), point) in all {
        chain.die_at(&format!("{point}@{passes}"), way).await;
    }
    chain.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_point_of_a_writers_death_the_next_node_has_what_was_acknowledged() {
    die_at_points_of(&WRITE_GROUPS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_point_of_an_owners_death_the_next_node_has_what_was_acknowledged() {
    die_at_points_of(&[CLUSTER_GROUP]).await;
}
