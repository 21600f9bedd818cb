//! Operators' view of the nodes: refused starts and their exit codes, commands at every data directory, and metrics.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::{Answer, ReadAnswer, wait_until};
use tokio::task::JoinSet;

use crate::svc;

/// Password in URLs of ledgers, which nothing shows.
const PASSWORD: &str = "hush";

/// Metrics of a node with their kinds. Names of counters end with `_total` where they have a value.
const METRICS: [&str; 9] = [
    "svc_cluster_control gauge",
    "svc_cluster_databases gauge",
    "svc_feed_lag_commits gauge",
    "svc_ledger_append_seconds histogram",
    "svc_ledger_tail_bytes gauge",
    "svc_ledger_unknown counter",
    "svc_ledger_waiting_bytes gauge",
    "svc_proxied_seconds histogram",
    "svc_takeovers counter",
];

/// Fields of a node in the answer of `svc node list --json`, in the order of their names.
const NODE_FIELDS: [&str; 12] = [
    "beat_age_ms",
    "control",
    "databases",
    "feed_lag",
    "leaving",
    "live",
    "name",
    "peer_url",
    "run",
    "schema",
    "serves",
    "version",
];

/// A start that is refused.
struct RefusedStart {
    settings: String,
    arguments: &'static [&'static str],
    /// Data directory, if it is not a new one.
    data: Option<PathBuf>,
    /// Part of the error.
    says: &'static str,
}

impl RefusedStart {
    fn new(settings: String, says: &'static str) -> Self {
        Self {
            settings,
            arguments: &[],
            data: None,
            says,
        }
    }

    /// Starts the node, which must end with 1 and say why.
    async fn check(self, new_data: PathBuf) {
        let file = new_data.with_extension("toml");
        fs::write(&file, &self.settings).unwrap();
        let data = self.data.unwrap_or(new_data);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
        let file = [file.to_str().unwrap()];
        let arguments = [&serve[..], &file[..], self.arguments].concat();
        let ended = svc().run(&data, &arguments).await;
        let (settings, says) = (self.settings, self.says);
        assert_eq!(ended.code, Some(1), "{settings}: {ended:?}");
        assert!(ended.stderr.contains(says), "{settings}: {}", ended.stderr);
        assert!(!ended.stderr.contains(PASSWORD), "{}", ended.stderr);
        assert_eq!(ended.stdout, "", "{settings}");
    }
}

/// Directory of a cluster, which has the settings of its nodes and the bucket.
fn directory_of(node: &ClusterNode) -> &Path {
    node.data.parent().unwrap()
}

/// Settings of the node `n1`, with the name of another.
fn settings_of(name: &str, n1: &ClusterNode) -> String {
    let settings = fs::read_to_string(directory_of(n1).join("n1.toml")).unwrap();
    settings.replace("'n1'", &format!("'{name}'"))
}

/// Starts that the settings or the stores are in the way of.
fn refused_settings(ledger: &str, owner: &ClusterNode) -> Vec<RefusedStart> {
    let (directory, own) = (directory_of(owner), settings_of("n2", owner));
    let bucket = format!("file://{}", directory.join("bucket").display());
    let empty = directory.join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = format!("file://{}", empty.display());
    let stranger = ledger.replace("postgres@", &format!("nobody:{PASSWORD}@"));
    let nowhere = format!("postgresql://svc:{PASSWORD}@127.0.0.1:1/svc");
    let store = format!(
        "[s3]\nendpoint = 'http://127.0.0.1:1'\nregion = 'eu'\naccess_key_id = 'key'\nsecret_access_key = '{PASSWORD}'\n{}",
        own.replace(&bucket, "s3://pages/svc")
    );
    let cases = [
        (settings_of("n1", owner), "another node named \"n1\" runs"),
        (own.replace(ledger, &stranger), "nobody"),
        (own.replace(ledger, &nowhere), "reading from the ledger"),
        (own.replace(&bucket, "file:///nowhere"), "cluster.bucket"),
        (own.replace(&bucket, &empty), "`svc cluster found`"),
        (store, "reading from the bucket"),
        (
            format!("{own}synced_standbys = 3\n"),
            "cluster.synced_standbys is 3",
        ),
        (
            format!("content_url = 's3://pages'\n{own}"),
            "leave content_url out",
        ),
        (format!("{own}[acme]\n"), "leave [acme] out"),
        (format!("{own}peers = 3\n"), "unknown field `peers`"),
        (
            own.replace("suspect_seconds = 4", "suspect_seconds = 3"),
            "cluster.suspect_seconds must be 4 to 60",
        ),
        (
            format!("{own}stale_pages_seconds = 86401\n"),
            "cluster.stale_pages_seconds must be 0 to 86400",
        ),
    ];
    let cases = cases.map(|(settings, says)| RefusedStart::new(settings, says));
    let dev = RefusedStart {
        arguments: &["--dev"],
        ..RefusedStart::new(own, "--dev is for this machine alone")
    };
    cases.into_iter().chain([dev]).collect()
}

/// Starts on data directories that are others'.
async fn refused_directories(owner: &ClusterNode) -> Vec<RefusedStart> {
    let (directory, own) = (directory_of(owner), settings_of("n2", owner));
    let machine = directory.join("machine");
    let made = svc().run(&machine, &["namespace", "create", "acme"]).await;
    assert!(made.success, "{made:?}");
    let other = directory.join("other");
    fs::create_dir(&other).unwrap();
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    fs::write(other.join("cluster.id"), id).unwrap();
    let cases = [
        (own.clone(), machine, "is that of one machine"),
        (own, other.clone(), "belongs to another installation"),
        // It would be served as a second installation, of before the founding.
        (String::new(), other, "the settings have no [cluster]"),
    ];
    let cases = cases.map(|(settings, data, says)| RefusedStart {
        data: Some(data),
        ..RefusedStart::new(settings, says)
    });
    cases.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_refused_ends_with_1_and_says_why() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let mut refused = refused_settings(&cluster.postgres.url(), &owner);
    refused.extend(refused_directories(&owner).await);
    let mut starts = JoinSet::new();
    for (at, start) in refused.into_iter().enumerate() {
        let data = directory_of(&owner).join(format!("refused-{at}"));
        starts.spawn(start.check(data));
    }
    starts.join_all().await;
    owner.add((1, 1)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_founding_without_a_cluster_makes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("new");
    let refused = svc().run(&data, &["cluster", "found"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("no [cluster]"), "{refused:?}");
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_ledger_ends_when_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("n1.toml");
    let bucket = directory.path().display();
    let settings = format!(
        "[cluster]\nname = 'n1'\nledger = 'postgresql://svc@127.0.0.1:1/svc'\n\
         bucket = 'file://{bucket}'\npeer_listen = '127.0.0.1:0'\n"
    );
    fs::write(&config, settings).unwrap();
    let mut serve = svc().command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
    serve.arg(directory.path().join("data"));
    serve.arg("--config").arg(config).stderr(Stdio::piped());
    let ended = tokio::task::spawn_blocking(move || {
        let mut node = serve.spawn().unwrap();
        let mut said = BufReader::new(node.stderr.take().unwrap()).lines();
        let waits = |line: io::Result<String>| line.unwrap().contains("waiting for the ledger");
        assert!(said.any(waits));
        kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
        node.wait().unwrap()
    });
    // It would be 1 if it had gone on waiting.
    assert_eq!(ended.await.unwrap().code(), Some(0));
}

/// Starts a node that shows metrics: a standby, or one that follows.
async fn start_with_metrics(name: &str, standby: bool, owner: &ClusterNode) -> ClusterNode {
    let data = directory_of(owner).join(name);
    let config = data.with_extension("ops.toml");
    fs::write(&config, settings_of(name, owner)).unwrap();
    let config = config.to_str().unwrap();
    let mut arguments = vec!["--ops-listen", "127.0.0.1:0", "--config", config];
    arguments.extend(standby.then_some("--standby"));
    let process = svc().serve(&data, &arguments).await;
    ClusterNode { process, data }
}

/// Asks the operators' listener of a node for a path, which names it as `host` if that is given.
async fn ask_operators(node: &ClusterNode, path: &str, host: Option<&str>) -> Answer {
    let status = fs::read(node.data.join("server.status")).unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    let address = status["ops_address"].as_str().unwrap();
    let request = node.process.client().get(format!("http://{address}{path}"));
    match host {
        Some(host) => request.header("host", host),
        None => request,
    }
    .answer()
    .await
}

/// Reads the metrics of a node, and checks that all of a node are there.
async fn read_metrics(node: &ClusterNode) -> String {
    let answer = ask_operators(node, "/metrics", None).await.expect(200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let text = answer.text();
    let mut kinds: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter(|line| METRICS.contains(line))
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, METRICS);
    text.to_owned()
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|one| one == line)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_shows_its_metrics_as_a_standby_and_as_the_owner() {
    let (_cluster, owner) = Cluster::with_room(svc()).await;
    let standby = start_with_metrics("n2", true, &owner).await;
    let metrics = read_metrics(&standby).await;
    for line in [
        "svc_cluster_control 0",
        "svc_takeovers_total 0",
        "svc_proxied_seconds_count 0",
    ] {
        assert!(has_line(&metrics, line), "{line}: {metrics}");
    }
    assert!(metrics.contains("svc_build_info{"), "{metrics}");
    let foreign = ask_operators(&standby, "/metrics", Some("evil.example")).await;
    foreign.problem(421, "misdirected");
    let elsewhere = ask_operators(&standby, "/others", None).await;
    elsewhere.problem(503, "capacity_reached");
    let public = standby.process.get("/metrics").await;
    public.problem(503, "capacity_reached");

    let promoted = svc().run(&standby.data, &["promote"]).await;
    assert!(promoted.success, "{promoted:?}");
    let metrics = read_metrics(&standby).await;
    for line in ["svc_cluster_control 1", "svc_takeovers_total 1"] {
        assert!(has_line(&metrics, line), "{line}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_hear_what_is_new_shows_its_metrics() {
    let (mut cluster, owner) = Cluster::with_room(svc()).await;
    let follower = start_with_metrics("n2", false, &owner).await;
    follower.wait_until_ready().await;
    cluster.postgres.stop_standbys().await;
    wait_until("a node that says that it is stale", async || {
        let said = follower.process.get("/readyz").await;
        (said.text() == "stale\n").then_some(())
    })
    .await;
    let metrics = read_metrics(&follower).await;
    assert!(has_line(&metrics, "svc_cluster_control 0"), "{metrics}");
    assert!(!has_line(&metrics, "svc_disk_free_bytes 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_at_a_standby_are_run_by_the_node_that_has_control() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let standby = cluster.start("n2", true).await;
    let create = ["namespace", "create", "birch", "--json"];
    let made = cluster.run(&standby.data, &create).await.json();
    assert!(made["credential"].is_string(), "{made}");
    let list = ["namespace", "list", "--json"];
    let [here, there] = [
        cluster.run(&standby.data, &list).await.json(),
        cluster.run(&owner.data, &list).await.json(),
    ];
    assert_eq!(here, there);
    assert!(here.to_string().contains("birch"), "{here}");
    let again = cluster.run(&standby.data, &create).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("birch"), "{again:?}");
    let commands: [&[&str]; 4] = [
        &["key", "list", "acme"],
        &["status"],
        &["audit"],
        &["guest", "rerender"],
    ];
    for command in commands {
        let done = cluster.run(&standby.data, command).await;
        assert!(done.success, "{command:?}: {done:?}");
    }
    // What its own guests are is not known before it serves.
    let refused = cluster.run(&standby.data, &["guest", "status"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("the node runs that has control"),
        "{refused:?}"
    );
    assert!(!standby.data.join("control.db").exists());

    let asked = cluster.run(&standby.data, &["healthcheck"]).await;
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(1), "standby\n"));
    let asked = cluster.run(&owner.data, &["healthcheck"]).await;
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), "ready\n"));
    let status = cluster.run(&owner.data, &["status", "--json"]).await.json();
    assert_eq!(status["content"], "in the bucket of the cluster");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_copied_by_restore_and_not_by_backup() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    owner.add((1, 1)).await.expect(200);
    let standby = cluster.start("n2", true).await;
    let directory = directory_of(&owner);
    let (backup, copy) = (directory.join("backup"), directory.join("copy"));
    let back_up = ["backup", backup.to_str().unwrap()];
    let commands: [&[&str]; 2] = [&["check"], &back_up];
    for data in [&owner.data, &standby.data] {
        check_refused(&cluster, data, commands).await;
    }
    let bucket = format!("file://{}", directory.join("bucket").display());
    let ledger = cluster.postgres.url();
    let restore = ["restore", "--from", &bucket, "--ledger", &ledger];
    let restored = cluster.run(&copy, &restore).await;
    assert!(restored.success, "{restored:?}");
    for command in commands {
        let done = cluster.run(&copy, command).await;
        assert!(done.success, "{done:?}");
    }
    // Without a server what is on the disk of a node is old.
    owner.process.kill().await;
    check_refused(&cluster, &owner.data, commands).await;
}

/// Runs commands at the data directory of a node, which name the one to use in place of them.
async fn check_refused(cluster: &Cluster, data: &Path, commands: [&[&str]; 2]) {
    for command in commands {
        let refused = cluster.run(data, command).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("svc restore --from"), "{refused:?}");
    }
}

/// The nodes that are listed, each with whether it lives.
async fn list(cluster: &Cluster, at: &ClusterNode) -> Vec<(String, bool)> {
    let nodes = cluster.nodes(at).await;
    for node in &nodes {
        let mut fields: Vec<_> = node.as_object().unwrap().keys().collect();
        fields.sort_unstable();
        assert_eq!(fields, NODE_FIELDS);
        // Port 0 of the settings is a free one.
        let url = node["peer_url"].as_str().unwrap();
        let port = url.strip_prefix("https://127.0.0.1:").unwrap();
        assert_ne!(port.parse::<u16>(), Ok(0), "{url}");
    }
    let nodes = nodes.iter().map(|node| {
        let name = node["name"].as_str().unwrap().to_owned();
        (name, node["live"] == true)
    });
    nodes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_is_listed_once_whatever_its_runs_were() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    let name = |name: &str, live: bool| (name.to_owned(), live);
    // The run that founded the cluster is none of its nodes.
    assert_eq!(list(&cluster, &owner).await, [name("n1", true)]);
    let refused = cluster.try_start("n1", true).await.unwrap_err();
    assert!(refused.contains("another node named"), "{refused}");
    // A name that a killed run has is waited for.
    cluster.start("n2", true).await.lose().await;
    let second = cluster.start("n2", true).await;
    let both = [name("n1", true), name("n2", true)];
    assert_eq!(list(&cluster, &owner).await, both);
    assert_eq!(list(&cluster, &second).await, both);
    let text = cluster.run(&second.data, &["node", "list"]).await.stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].contains("control") && lines[0].contains("last beat"));
    assert!(lines[1].contains("standby"), "{text}");
    let remove = async |at: &ClusterNode, name| {
        cluster
            .run(&at.data, &["node", "remove", name, "--json"])
            .await
    };
    for (at, name, says) in [
        (&owner, "n1", "this is n1 itself"),
        (&owner, "n2", "n2 runs"),
        (&second, "n1", "n1 runs"),
        (&second, "n3", "no node is named"),
    ] {
        let refused = remove(at, name).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
    second.lose().await;
    wait_until("a node that is dead", async || {
        let listed = list(&cluster, &owner).await;
        (listed == [name("n1", true), name("n2", false)]).then_some(())
    })
    .await;
    let text = cluster.run(&owner.data, &["node", "list"]).await.stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[1].contains("dead") && !lines[1].contains("last beat"));
    // One that was killed just now is waited for.
    cluster.start("n3", true).await.lose().await;
    for gone in ["n2", "n3"] {
        let removed = remove(&owner, gone).await.json();
        assert_eq!(removed["removed"], gone);
    }
    assert_eq!(list(&cluster, &owner).await, [name("n1", true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_say_that_the_ledger_is_away() {
    let (cluster, owner) = Cluster::with_room(svc()).await;
    cluster.postgres.set_synced(0, "").await;
    wait_until("a node that does not answer", async || {
        let probe = owner.process.get("/readyz").await;
        (probe.text() == "stale\n").then_some(())
    })
    .await;
    for command in [&["namespace", "list"], &["node", "list"]] {
        let refused = cluster.run(&owner.data, command).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("does not reach the ledger"),
            "{refused:?}"
        );
    }
    let asked = cluster.run(&owner.data, &["healthcheck"]).await;
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(1), "stale\n"));
}
