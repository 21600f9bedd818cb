//! Death of a founding at every point of its way: another one completes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use svc_tests::cluster::{Cluster, Entry};
use svc_tests::{fault_group, fault_points};

use crate::crashes::CLUSTER_GROUP;
use crate::svc;

/// Fault points that only who founds passes.
pub(crate) const FOUNDING: [&str; 9] = [
    "cluster.id_recorded",
    "cluster.bucket_claimed",
    "cluster.ledger_made",
    "cluster.content_brought",
    "cluster.hours_brought",
    "cluster.visits_brought",
    "cluster.backends_brought",
    "cluster.control_brought",
    "cluster.founded",
];
/// Fault points of each base: of that of the backend first, then of that of control.
const OF_BASES: [&str; 4] = [
    "cluster.base_written",
    "cluster.base_stored",
    "cluster.base_named",
    "cluster.trimmed",
];
/// Entries of the installation that is brought.
const ENTRIES: [Entry; 2] = [(1, 1), (1, 2)];

/// Lists the names of all files below a directory.
fn files(below: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![below.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    found.insert(path.strip_prefix(below).unwrap().to_owned());
                }
            }
        }
    }
    found
}

/// Copies an installation that nobody serves.
fn copy(cluster: &Cluster, installation: &Path) -> PathBuf {
    let data = cluster.new_data("copy");
    let mut command = Command::new("cp");
    let copied = command.arg("-a").arg(installation).arg(&data).status();
    assert!(copied.unwrap().success());
    data
}

/// Asserts that a node serves what was founded.
async fn assert_served(cluster: &Cluster, fault: &str) {
    let node = cluster.start("n1", true).await;
    // The run that has founded may be in the ledger, and nobody waits until it is dead for sure.
    let promoted = cluster.promote(&node).await;
    assert!(promoted.success, "{fault}: {promoted:?}");
    node.process.get("/room").await.expect(200);
    let entries = cluster.entries(&node).await;
    assert!(entries.keys().eq(&ENTRIES), "{fault}: {entries:?}");
    node.add((2, 1)).await.expect(200);
    node.lose().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_point_of_a_foundings_death_it_can_be_completed() {
    let mut cluster = Cluster::unfounded(svc()).await;
    let installation = cluster.installation(&ENTRIES).await;
    let data = copy(&cluster, &installation);
    let founded = cluster.found_with(&data, None).await;
    assert!(founded.success, "{founded:?}");
    let objects = files(&cluster.bucket());
    assert!(files(&installation.join("once")).len() == 1 && objects.len() > 4);

    let founding = fault_points()
        .into_iter()
        .filter(|point| fault_group(point) == CLUSTER_GROUP)
        .flat_map(|point| {
            let times: &[u32] = match &*point {
                alone if FOUNDING.contains(&alone) => &[1],
                of_base if OF_BASES.contains(&of_base) => &[1, 2],
                // A node passes it: its death is tried in `crashes`.
                _ => &[],
            };
            let times = times.iter();
            times
                .map(|time| format!("{point}@{time}"))
                .collect::<Vec<_>>()
        });
    let founding: Vec<_> = founding.collect();
    assert_eq!(founding.len(), FOUNDING.len() + 2 * OF_BASES.len());
    for fault in founding {
        cluster.empty().await;
        let data = copy(&cluster, &installation);
        let died = cluster.found_with(&data, Some(&fault)).await;
        assert_eq!(died.code, None, "{fault}: it did not die: {died:?}");
        let again = cluster.found_with(&data, None).await;
        assert!(again.success, "{fault}: {again:?}");
        // Nothing lacks, and nothing is left over.
        assert_eq!(files(&cluster.bucket()), objects, "{fault}");
        assert_eq!(files(&data.join("once")), BTreeSet::new(), "{fault}");
        // The second one had nothing to do, and the first one still has control.
        if again.stdout.contains("already") {
            assert_served(&cluster, &fault).await;
        }
    }
    // Bases are named, too.
    cluster.empty().await;
    let data = copy(&cluster, &installation);
    let died = cluster
        .found_with(&data, Some("cluster.base_stored@2"))
        .await;
    assert_eq!(died.code, None, "{died:?}");
    let again = cluster.found_with(&data, None).await;
    assert!(again.success, "{again:?}");
    assert_served(&cluster, "cluster.base_stored@2").await;
}
