//! One machine alone: a server without `[cluster]` has no socket, no connection and no thread of a cluster's, and looks up no name.
//!
//! A tracer writes down the kernel's calls of the whole process, from its start to its end. It does not see tasks that make no such call,
//! nor time and memory: those are measured by the benches.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;
use svc_tests::{KernelTrace, kernel_calls, wait_until};
use tempfile::TempDir;

use crate::svc;

/// Kinds of calls that are written down: sockets, files that are opened, and names of threads.
const TRACED: &str = "trace=%network,?open,openat,prctl";
/// Sockets of a server: that of its clients, and that of operators' commands.
const SOCKETS: [&str; 2] = ["AF_INET", "AF_UNIX"];
/// Files that are read to look up a name.
const RESOLVER: [&str; 5] = [
    "\"/etc/resolv.conf\"",
    "\"/etc/nsswitch.conf\"",
    "\"/etc/hosts\"",
    "\"/etc/host.conf\"",
    "\"/etc/gai.conf\"",
];
/// Names of threads, but for the numbers at their ends. The kernel keeps 15 bytes of a name.
const THREADS: [&str; 14] = [
    "control-writer",
    "sql-close-",
    "sql-history",
    "sql-long-",
    "sql-short-",
    "sql-watchdog",
    "svc-checks-",
    "svc-checks-own",
    "svc-epoch",
    "svc-guests",
    "svc-optimise",
    "svc-pages-",
    "svc-pages-own",
    "tokio-rt-worker",
];

/// Lists the families of the sockets that were made.
fn sockets(trace: &str) -> Vec<&str> {
    let made = kernel_calls(trace).filter(|(call, _)| *call == "socket");
    let families = made.filter_map(|(_, rest)| rest.split(',').next());
    let mut families: Vec<_> = families.collect();
    families.sort_unstable();
    families
}

/// Lists the calls that a server of one machine does not make.
fn surplus(trace: &str) -> Vec<&str> {
    let is_surplus = |(call, rest): &(&str, &str)| match *call {
        "connect" => true,
        "open" | "openat" => RESOLVER.iter().any(|file| rest.contains(file)),
        "prctl" => {
            let name = rest.strip_prefix("PR_SET_NAME, \"");
            let name = name.and_then(|name| name.split('"').next());
            name.is_some_and(|name| {
                let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                !THREADS.contains(&stem)
            })
        }
        _ => false,
    };
    kernel_calls(trace)
        .filter(is_surplus)
        .map(|(_, rest)| rest)
        .collect()
}

#[tokio::test]
async fn a_server_of_one_machine_has_nothing_of_a_clusters() {
    let (data, trace) = (TempDir::new().unwrap(), KernelTrace::new(TRACED));
    let server = trace.of(svc()).serve(data.path(), &[]).await;
    let body = json!({ "content": "x", "name": "page" });
    server.json("/api/v1/deploy", &body).await.expect(201);
    server.get("/page").await.expect(200);
    let listed = svc().run(data.path(), &["namespace", "list"]).await;
    assert!(listed.success, "{listed:?}");
    let ended = format!("{} ", server.id());
    server.signal(Signal::TERM);
    let (status, _) = server.wait_for_exit().await;
    assert!(status.success(), "{status}");
    let trace = wait_until("the end of the trace", async || {
        let text = trace.read();
        let is_whole = text
            .lines()
            .any(|line| line.starts_with(&ended) && line.contains("+++ exited"));
        is_whole.then_some(text)
    })
    .await;
    assert_eq!(sockets(&trace), SOCKETS, "{trace}");
    let surplus = surplus(&trace);
    assert!(surplus.is_empty(), "{surplus:#?}");
}

/// The tracer sees what the test before it looks for: a node that looks for its ledger does all of it.
#[tokio::test]
async fn a_node_of_several_looks_up_its_ledger_and_connects() {
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (bucket, config) = (other.path().join("bucket"), other.path().join("svc.toml"));
    std::fs::create_dir(&bucket).unwrap();
    // Nobody listens there.
    let text = format!(
        "[cluster]\nname = 'n1'\nledger = 'postgresql://svc@localhost:1/svc'\nbucket = 'file://{}'\npeer_listen = '127.0.0.1:0'\n",
        bucket.display()
    );
    std::fs::write(&config, text).unwrap();
    let trace = KernelTrace::new(TRACED);
    let mut command = trace.of(svc()).command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(&config).arg("--data").arg(data.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut node = command.spawn().unwrap();
    wait_until("a name that is looked up, and a connection", async || {
        let trace = trace.read();
        let surplus = surplus(&trace);
        let is_looked_up = |rest: &&str| RESOLVER.iter().any(|file| rest.contains(file));
        let is_connected = |rest: &&str| rest.contains("htons(1)");
        let is_seen = surplus.iter().any(is_looked_up) && surplus.iter().any(is_connected);
        is_seen.then_some(())
    })
    .await;
    node.kill().unwrap();
    node.wait().unwrap();
}

#[test]
fn threads_and_sockets_of_others_are_found() {
    let thread = |name: &str| format!("7  prctl(PR_SET_NAME, \"{name}\") = 0\n");
    for name in ["svc-pages-0", "svc-pages-own", "sql-short-11"] {
        assert!(surplus(&thread(name)).is_empty(), "{name}");
    }
    for name in ["svc-ledger", "svc-pages-new", "postgres"] {
        assert_eq!(surplus(&thread(name)).len(), 1, "{name}");
    }
    let trace = "7  socket(AF_UNIX, SOCK_STREAM, 0) = 3\n12 socket(AF_INET6, SOCK_DGRAM <unfinished ...>\n12 <... socket resumed>) = 4\n";
    assert_eq!(sockets(trace), ["AF_INET6", "AF_UNIX"]);
}
