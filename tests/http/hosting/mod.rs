//! Operators see what they host, change whose it is, and read in the log what was done.

mod log;
mod namespaces;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{Process, ReadAnswer, TestServer, disk, wait_until};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::{Owner, text};
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

async fn run(server: &TestServer, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    server.command(&svc(), &arguments).await.json()
}

#[tokio::test]
async fn the_status_counts_against_the_caps_of_the_server() {
    let server = TestServer::builder()
        .system_clock()
        .limits(|limits| {
            limits.active_deployments = 77;
            limits.backends = 7;
        })
        .start()
        .await;
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    let server = &fixture.server;
    let once = json!({ "content": "x", "name": "once", "one_time": true });
    server.publish_slug(&once).await;
    server
        .publish_slug(&json!({ "content": "x", "name": "bad" }))
        .await;
    let report = json!({ "slug": "bad", "reason": "malware" });
    server
        .json("/api/v1/reports", &report)
        .answer()
        .await
        .expect(202);
    server
        .command(&svc(), &["deployment", "disable", "bad"])
        .await;
    let status = run(server, &["status"]).await;
    assert_eq!(
        status["counts"],
        json!({
            "deployments": 3, "shares": 2, "frontends": 1, "disabled": 1, "backends": 1,
            "projects": 1, "namespaces": 1, "open_reports": 1,
            "files": 0, "staged_files": 0, "visitor_files": 0, "ended_visitor_files": 0, "file_bytes": 0, "blocked": 0,
        })
    );
    assert_eq!(
        status["caps"],
        json!({
            "active_deployments": { "used": 3, "cap": 77 }, "backends": { "used": 1, "cap": 7 },
            "storage_total_bytes": { "used": 0, "cap": 21_474_836_480_u64 },
        })
    );
    assert_eq!(status["server_running"], true);
    let address = server.address().to_string();
    assert_eq!(status["server"]["address"], json!(address));
    assert_eq!(
        status["backup"],
        json!({ "complete": null, "failed_at": null })
    );
    for part in ["control", "content", "once", "databases", "total", "free"] {
        assert!(
            status["bytes"][part].as_u64().unwrap() > 0,
            "{part}: {status}"
        );
    }
    let known = async || {
        let status = run(server, &["status"]).await;
        let digest = status["guests"]["render"]["digest"].as_str()?;
        (digest.len() == 64).then_some(())
    };
    wait_until("the server to say which guests serve", known).await;

    let vault = TempDir::new().unwrap();
    let backup = vault.path().join("backup");
    run(server, &["backup", backup.to_str().unwrap()]).await;
    let done = run(server, &["status"]).await["backup"]["complete"].take();
    assert_eq!(done["directory"], json!(backup));
    assert!(done["bytes"].as_u64().unwrap() > 0);
    let inside = server.data().join("backup");
    let failed = server
        .command(&svc(), &["backup", inside.to_str().unwrap()])
        .await;
    assert!(!failed.success);
    let backup = run(server, &["status"]).await["backup"].take();
    assert_eq!(backup["complete"], done);
    assert!(backup["failed_at"].is_string(), "{backup}");
    let words = server.command(&svc(), &["status"]).await.stdout;
    for part in [
        "3 of 77: 2 shares, 1 frontends; 1 taken down",
        "1 of 7",
        "1 open",
        "FAILED",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
}

#[tokio::test]
async fn the_status_has_the_latest_errors() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let status = async || svc().run(data.path(), &["status", "--json"]).await.json();
    assert_eq!(status().await["errors"], json!([]));
    // A page that the store has lost.
    let page = json!({ "content": "words-to-lose", "name": "page" });
    server.json("/api/v1/deploy", &page).await.expect(201);
    server.signal(Signal::TERM);
    server.wait_for_exit().await;
    std::fs::remove_dir_all(data.path().join("content")).unwrap();
    let server = svc().serve(data.path(), &[]).await;
    assert_eq!(server.get("/page").await.status, 500);
    let seen = async || {
        status().await["errors"][0]["text"]
            .as_str()
            .map(str::to_owned)
    };
    let seen = wait_until("the error to be told", seen).await;
    assert!(seen.starts_with("internal error"), "{seen}");
    server.kill().await;
    let after = status().await;
    assert_eq!(after["server_running"], false);
    assert_eq!(
        after["errors"][0]["text"],
        json!(seen),
        "of the last server"
    );
}

#[tokio::test]
async fn deployments_are_listed_and_shown() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let server = &fixture.server;
    let share = json!({ "content": "<p>x", "name": "open", "title": "Tit\u{1b}[31mle" });
    server.publish_slug(&share).await;
    let safe = json!({ "content": "x", "name": "safe", "password": "p", "one_time": true });
    server.publish_slug(&safe).await;
    server.get("/open").answer().await.expect(200);
    server.visits("open").await;
    let list = async |arguments: &[&str]| {
        let found = run(server, &[&["deployment", "list"][..], arguments].concat()).await;
        let found = found["deployments"].as_array().unwrap().clone();
        let mut slugs: Vec<_> = found.iter().map(|one| text(&one["slug"])).collect();
        slugs.sort();
        slugs
    };
    assert_eq!(list(&[]).await, ["open", "room", "safe"]);
    assert_eq!(list(&["--namespace", "acme"]).await, ["room"]);
    assert_eq!(list(&["--disabled"]).await, Vec::<String>::new());
    let disable = ["deployment", "disable", "safe"];
    server.command(&svc(), &disable).await;
    assert_eq!(list(&["--disabled"]).await, ["safe"]);

    let show = async |slug: &str| run(server, &["deployment", "show", slug]).await;
    let open = show("open").await;
    for (key, value) in [
        ("kind", json!("share")),
        ("type", json!("html")),
        ("namespace", Value::Null),
        ("project_id", Value::Null),
        ("visits", json!(1)),
        ("source_bytes", json!(4)),
        ("protected", json!(false)),
        ("open_reports", json!(0)),
    ] {
        assert_eq!(open[key], value, "{key}");
    }
    let room = show("room").await;
    assert_eq!(room["namespace"], "acme");
    assert_eq!(room["project_id"], json!(fixture.project));
    let safe = show("safe").await;
    assert_eq!(
        (&safe["one_time"], &safe["protected"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(safe["source_bytes"], Value::Null);
    assert!(safe["page_bytes"].as_u64().unwrap() > 0);
    assert!(!safe.to_string().contains("argon2"), "{safe}");
    let none = server
        .command(&svc(), &["deployment", "show", "none"])
        .await;
    assert!(!none.success && none.stderr.contains("`none`"), "{none:?}");
    for arguments in [&["deployment", "list"][..], &["deployment", "show", "open"]] {
        let words = server.command(&svc(), arguments).await.stdout;
        assert!(
            words.contains("open") && !words.contains('\u{1b}'),
            "{words}"
        );
    }
}

#[tokio::test]
async fn projects_are_listed_and_shown() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let server = &fixture.server;
    fixture.define(&[("all", "SELECT * FROM guests")]).await;
    Owner::new(server, "other").await;
    let other = run(server, &["project", "list", "--namespace", "other"]).await;
    assert_eq!(other, json!({ "projects": [] }));
    let all = run(server, &["project", "list"]).await;
    let listed = &all["projects"][0];
    assert_eq!(all["projects"].as_array().unwrap().len(), 1);
    assert_eq!(listed["id"], json!(fixture.project));
    assert_eq!(
        (&listed["namespace"], &listed["frontends"]),
        (&json!("acme"), &json!(1))
    );
    let label = text(&listed["host_label"]);
    for name in [&label, &fixture.project] {
        let shown = run(server, &["project", "show", name]).await;
        assert_eq!(shown["members"][0]["slug"], "room");
        let backend = &shown["backend"];
        assert_eq!(
            (&backend["actions"], &backend["migrations"]),
            (&json!(1), &json!(1))
        );
        assert!(backend["bytes"].as_u64().unwrap() > 0);
    }
    let words = server.command(&svc(), &["project", "show", &label]).await;
    assert!(words.stdout.contains("1 migration, 1 action"), "{words:?}");
    let none = server.command(&svc(), &["project", "show", "none"]).await;
    assert!(!none.success && none.stderr.contains("`none`"), "{none:?}");
}

#[tokio::test]
async fn a_closed_report_is_listed_no_more() {
    let server = TestServer::builder().system_clock().start().await;
    server
        .publish_slug(&json!({ "content": "x", "name": "bad" }))
        .await;
    let report = json!({ "slug": "bad", "reason": "abuse" });
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = server.json("/api/v1/reports", &report).answer().await;
        ids.push(text(&answer.expect(202).json()["id"]));
    }
    let listed = async |arguments: &[&str]| {
        let found = run(&server, &[&["report", "list"][..], arguments].concat()).await;
        let reports = found["reports"].as_array().unwrap().clone();
        reports
            .iter()
            .map(|one| text(&one["id"]))
            .collect::<Vec<_>>()
    };
    let closed = run(&server, &["report", "close", &ids[0]]).await;
    assert_eq!(listed(&[]).await, [ids[1].clone()]);
    assert_eq!(listed(&["--all"]).await.len(), 2);
    let again = run(&server, &["report", "close", &ids[0]]).await;
    assert_eq!(again, closed, "closing twice keeps the first time");
    assert!(closed["closed_at"].is_string());
    for id in ["none", "01a1fc28-c57b-71f4-90db-2871ff5bd43a"] {
        let refused = server.command(&svc(), &["report", "close", id]).await;
        assert!(
            !refused.success && refused.stderr.contains(id),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn numbers_have_their_caps_beside_them() {
    let server = TestServer::builder()
        .settings(|settings| settings.ops_listen = Some(([127, 0, 0, 1], 0).into()))
        .limits(|limits| limits.active_deployments = 77)
        .start()
        .await;
    server.publish_slug(&json!({ "content": "x" })).await;
    let ops = server.server().ops_address().unwrap();
    let client = svc_tests::http_client().build().unwrap();
    let numbers = client.get(format!("http://{ops}/metrics")).answer().await;
    let numbers = numbers.expect(200).text().to_owned();
    let version = format!(
        "svc_build_info{{version=\"{}\"}} 1",
        env!("CARGO_PKG_VERSION")
    );
    for line in [
        "svc_limit_used{limit=\"active_deployments\"} 1",
        "svc_limit{limit=\"active_deployments\"} 77",
        "svc_limit{limit=\"backends\"} 250",
        "svc_limit_used{limit=\"storage_total_bytes\"} 0",
        "svc_limit{limit=\"storage_total_bytes\"} 21474836480",
        "svc_files 0",
        "svc_staged_files 0",
        "svc_visitor_files 0",
        "svc_blocked_content 0",
        "svc_limit_used{limit=\"page_cache_bytes\"}",
        "svc_shares 1",
        "svc_open_reports 0",
        "svc_disk_reserved_bytes 104857600",
        &version,
    ] {
        assert!(numbers.contains(line), "{line}\n{numbers}");
    }
    let value = |name: &str| {
        let line = numbers
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name} in\n{numbers}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    for name in [
        "svc_disk_free_bytes",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_threads",
        "process_start_time_seconds",
    ] {
        assert!(value(name) > 0.0, "{name}");
    }
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let started = value("process_start_time_seconds");
    assert!(
        started < now + 60.0 && started > now - 86_400.0,
        "{started}"
    );
}

#[tokio::test]
async fn addresses_are_written_as_people_do() {
    for listen in ["localhost:0", ":0"] {
        let data = TempDir::new().unwrap();
        let server = svc().serve(data.path(), &["--listen", listen]).await;
        let url = format!("http://127.0.0.1:{}/healthz", server.address().port());
        server.client().get(url).answer().await.expect(200);
    }
    let data = TempDir::new().unwrap();
    for (text, says) in [("8080", "`:8080`"), ("localhost", "`localhost:8080`")] {
        let output = svc().run(data.path(), &["serve", "--listen", text]).await;
        assert!(
            !output.success && output.stderr.contains(says),
            "{output:?}"
        );
    }
    let file = data.path().join("svc.toml");
    std::fs::write(&file, "listen = ':8080'\n").unwrap();
    let mut command = svc().command();
    command.args(["config", "--json", "--config"]).arg(&file);
    let effective = svc_tests::run_command(command).await.json();
    assert_eq!(effective["listen"], "[::]:8080");
}

#[tokio::test]
async fn a_user_without_a_home_has_a_cache() {
    let root = TempDir::new().unwrap();
    let service = root.path().join("var-cache");
    std::fs::create_dir(&service).unwrap();
    let service = service.to_str().unwrap();
    for (environment, expected) in [
        (&[("HOME", "/nonexistent")][..], "/data/cache".to_owned()),
        (
            &[("HOME", "/nonexistent"), ("CACHE_DIRECTORY", service)],
            format!("{service}/svc"),
        ),
    ] {
        let mut command = svc().command();
        command.env_remove("SVC_CACHE").env("SVC_DATA", "/data");
        command
            .envs(environment.iter().copied())
            .args(["config", "--json"]);
        let effective = svc_tests::run_command(command).await.json();
        assert_eq!(effective["cache"], json!(expected), "{environment:?}");
    }
    // It starts there, and closes the directory that it makes.
    let data = root.path().join("data");
    let server = svc()
        .serve_with_environment(&[("HOME", "/nonexistent")], &["SVC_CACHE"], &data, &[])
        .await;
    server.get("/healthz").await.expect(200);
    let mode =
        std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(data.join("cache")).unwrap());
    assert_eq!(mode & 0o777, 0o700);
    let request = server.client().request(Method::GET, server.url("/readyz"));
    assert!([200, 503].contains(&request.answer().await.status));
}
