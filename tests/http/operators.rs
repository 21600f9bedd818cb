//! Operators: commands beside a running server, settings, signals, and what is printed where.

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use svc::content::{Content, OnceFiles};
use svc_tests::{Ask, TestServer, until};
use tempfile::TempDir;

use crate::account::Owner;
use crate::svc;

#[track_caller]
fn keys(document: &Value) -> Vec<&str> {
    document
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[tokio::test]
async fn disabling_and_enabling_take_effect_while_the_server_runs() {
    let server = TestServer::builder().system_clock().start().await;
    for body in [
        json!({ "content": "x", "name": "page" }),
        json!({ "content": "x", "name": "once", "one_time": true }),
        json!({ "content": "x", "name": "safe", "password": "p" }),
    ] {
        server.slug(&body).await;
    }
    let cookie = server.unlock("safe", "p").await;
    for slug in ["page", "once", "safe"] {
        server.get(&format!("/{slug}")).answer().await;
        let output = server
            .command(&svc(), &["deployment", "disable", slug])
            .await;
        assert!(output.success, "{output:?}");
        let path = format!("/{slug}");
        let disabled = async || (server.get(&path).answer().await.status == 403).then_some(());
        until("the page to be disabled", disabled).await;
        for accept in ["text/html", "*/*"] {
            for path in [path.clone(), format!("{path}/")] {
                let request = server.get(&path).header("accept", accept);
                let answer = request.header("cookie", &cookie).answer().await.expect(403);
                assert!(answer.html().contains("disabled"));
                assert!(answer.header("cache-control").unwrap().contains("no-store"));
            }
            let raw = server.get(&format!("{path}/raw")).header("accept", accept);
            raw.answer().await.problem(403, "disabled");
        }
        assert_eq!(server.post(&path).answer().await.status, 403);
        let unlock = server.json(&format!("/api/v1/auth/{slug}"), &json!({ "password": "p" }));
        unlock.answer().await.problem(403, "disabled");
        let report = json!({ "slug": slug, "reason": "other" });
        server
            .json("/api/v1/reports", &report)
            .answer()
            .await
            .expect(202);

        let command = ["deployment", "enable", slug, "--json"];
        let output = server.command(&svc(), &command).await.json();
        assert_eq!(output, json!({ "slug": slug, "disabled": false }));
        let enabled = async || (server.get(&path).answer().await.status != 403).then_some(());
        until("the page to be enabled", enabled).await;
    }
    server.post("/once").answer().await.expect(200);
    let output = server
        .command(&svc(), &["deployment", "disable", "nothing"])
        .await;
    assert!(
        !output.success && output.stderr.contains("nothing"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_ban_survives_a_restart() {
    let server = TestServer::start().await;
    server
        .slug(&json!({ "content": "x", "name": "page" }))
        .await;
    server
        .command(&svc(), &["deployment", "disable", "page"])
        .await;
    let server = server.restart().await;
    server.get("/page").answer().await.expect(403);
}

#[tokio::test]
async fn reports_are_listed() {
    let server = TestServer::start().await;
    let none = server
        .command(&svc(), &["report", "list", "--json"])
        .await
        .json();
    assert_eq!(none, json!({ "reports": [] }));
    server.slug(&json!({ "content": "x", "name": "bad" })).await;
    let full = json!({
        "slug": "bad", "reason": "malware", "details": "it\u{1b}[31m bites", "contact": "me@example.com",
    });
    let first = server
        .json("/api/v1/reports", &full)
        .answer()
        .await
        .expect(202)
        .json();
    server.advance(1);
    let bare = json!({ "slug": "bad", "reason": "other" });
    let second = server
        .json("/api/v1/reports", &bare)
        .answer()
        .await
        .expect(202)
        .json();
    let listed = server
        .command(&svc(), &["report", "list", "--json"])
        .await
        .json();
    assert_eq!(
        listed,
        json!({ "reports": [
            {
                "id": second["id"], "slug": "bad", "reason": "other", "details": null, "contact": null,
                "created_at": "2026-11-20T12:00:01.000Z",
            },
            {
                "id": first["id"], "slug": "bad", "reason": "malware", "details": "it\u{1b}[31m bites",
                "contact": "me@example.com", "created_at": "2026-11-20T12:00:00.000Z",
            },
        ] })
    );
    let text = server.command(&svc(), &["report", "list"]).await;
    assert!(text.stdout.contains("me@example.com"), "{text:?}");
    assert!(!text.stdout.contains('\u{1b}'), "a terminal is not steered");
}

#[tokio::test]
async fn namespaces_and_keys() {
    let server = TestServer::builder().system_clock().start().await;
    let run = async |arguments: &[&str]| server.command(&svc(), arguments).await;
    let made = run(&["namespace", "create", "acme", "--plan", "pro", "--json"])
        .await
        .json();
    assert_eq!(keys(&made), ["credential", "id", "plan", "slug"]);
    assert_eq!(
        (&made["slug"], &made["plan"]),
        (&json!("acme"), &json!("pro"))
    );
    assert_eq!(made["id"].as_str().unwrap().len(), 36);
    let free = run(&["namespace", "create", "other", "--json"])
        .await
        .json();
    assert_eq!(free["plan"], "free");
    let first = made["credential"].as_str().unwrap().to_owned();
    formed(&first);
    let listed = run(&["namespace", "list", "--json"]).await.json();
    let slugs: Vec<_> = listed["namespaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| &n["slug"])
        .collect();
    assert_eq!(slugs, [&json!("acme"), &json!("other")]);

    let second = run(&["key", "create", "acme", "--json"]).await.json();
    assert_eq!(keys(&second), ["credential", "key_id"]);
    let key_id = second["key_id"].as_str().unwrap().to_owned();
    let second = second["credential"].as_str().unwrap().to_owned();
    formed(&second);
    assert_eq!(second.split('_').nth(1), Some(key_id.as_str()));

    let with = async |credential: &str| {
        let request = server.json("/api/v1/deploy", &json!({ "content": "x" }));
        request.bearer_auth(credential).answer().await.status
    };
    assert_eq!((with(&first).await, with(&second).await), (201, 201));
    let list = async || run(&["key", "list", "acme", "--json"]).await.json();
    let used = async || {
        let list = list().await;
        let keys = list["keys"].as_array().unwrap().clone();
        let used = keys.iter().all(|key| key["last_used_at"].is_string());
        used.then_some(keys)
    };
    let used = until("both keys to be marked as used", used).await;
    assert_eq!(used.len(), 2);
    for key in &used {
        assert_eq!(
            keys(key),
            ["created_at", "key_id", "last_used_at", "revoked_at"]
        );
        assert_eq!(key["revoked_at"], Value::Null);
        let made = key["created_at"].as_str().unwrap();
        assert!(made.len() == 24 && made.ends_with('Z'), "{made}");
    }
    let revoked = run(&["key", "revoke", "acme", &key_id, "--json"]).await;
    assert_eq!(revoked.json()["key_id"], json!(key_id));
    assert_eq!((with(&first).await, with(&second).await), (201, 401));
    let list = list().await;
    let states: Vec<_> = list["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k["revoked_at"].is_string())
        .collect();
    assert_eq!(states.iter().filter(|revoked| **revoked).count(), 1);

    for (arguments, says) in [
        (&["namespace", "create", "acme"][..], "acme"),
        (&["namespace", "create", "No Name"], "name"),
        (&["namespace", "create", "x", "--plan", "gold"], "gold"),
        (&["key", "create", "nobody"], "nobody"),
        (&["key", "list", "nobody"], "nobody"),
        (&["key", "revoke", "acme", "zzzzzzzz"], "zzzzzzzz"),
        (&["key", "revoke", "other", &key_id], &key_id),
        (&["key", "list", "acme", "--jsn"], "--jsn"),
        (&["nothing"], "nothing"),
    ] {
        let output = run(arguments).await;
        assert!(!output.success, "{arguments:?}");
        assert!(
            output.stderr.contains(says),
            "{arguments:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
    // What is shown once is stored nowhere.
    for credential in [first, second] {
        let secret = credential.split('_').nth(2).unwrap();
        let held = svc_tests::disk::holding(server.data(), secret);
        assert!(held.is_empty(), "{held:?}");
    }
}

/// `svc_<8>_<32 bytes in base 62>_<6>`.
#[track_caller]
fn formed(credential: &str) {
    let parts: Vec<_> = credential.split('_').collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    assert_eq!(lengths, [3, 8, 43, 6], "{credential}");
    assert_eq!(parts[0], "svc");
    assert!(
        parts[1..]
            .concat()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric())
    );
}

#[tokio::test]
async fn a_namespace_can_be_made_before_the_first_start() {
    let data = TempDir::new().unwrap();
    let data = data.path().join("new");
    let made = svc()
        .run(&data, &["namespace", "create", "early", "--json"])
        .await
        .json();
    let server = svc().serve(&data, &[]).await;
    let url = server.url("/api/v1/deploy");
    let request = server.client().post(url).json(&json!({ "content": "x" }));
    let request = request.bearer_auth(made["credential"].as_str().unwrap());
    request.answer().await.expect(201);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&data).unwrap());
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn a_check_finds_damage() {
    let server = TestServer::start().await;
    server
        .slug(&json!({ "content": "words-to-damage", "name": "page" }))
        .await;
    server
        .slug(&json!({ "content": "x", "name": "once", "one_time": true }))
        .await;
    let check = async || server.command(&svc(), &["check", "--json"]).await;
    let sound = check().await.json();
    assert_eq!(
        (&sound["errors"], &sound["leftovers"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&sound["deployments"], &sound["objects"]),
        (&json!(2), &json!(2))
    );
    let source = svc_tests::disk::holding(&server.data().join("content"), "words-to-damage");
    let path = server.data().join("content").join(&source[0]);
    let whole = std::fs::read(&path).unwrap();
    for damage in [&b"words-to-damagf"[..], b"words", b""] {
        std::fs::write(&path, damage).unwrap();
        let output = check().await;
        assert!(
            !output.success && output.stdout.contains("damaged"),
            "{output:?}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    let output = check().await;
    assert!(
        !output.success && output.stdout.contains("missing"),
        "{output:?}"
    );
    std::fs::write(&path, whole).unwrap();
    assert!(check().await.success);
    let once = server.data().join("once");
    for name in svc_tests::disk::names(&once) {
        std::fs::remove_file(once.join(name)).unwrap();
    }
    let output = check().await;
    assert!(
        !output.success && output.stdout.contains("no file"),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_data_directory_has_one_server() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &[]).await;
    let second = svc()
        .run(data.path(), &["serve", "--listen", "127.0.0.1:0"])
        .await;
    assert!(!second.success);
    assert_eq!(second.stdout, "");
    let holder = server.address().to_string();
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    assert!(second.stderr.contains("in use"), "{}", second.stderr);
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn a_stop_finishes_what_runs_and_succeeds() {
    for signal in [Signal::TERM, Signal::INT] {
        let data = TempDir::new().unwrap();
        let server = svc().serve(data.path(), &[]).await;
        let body = json!({ "content": "x", "name": "page" });
        server.json("/api/v1/deploy", &body).await.expect(201);
        for _ in 0..3 {
            server.get("/page").await.expect(200);
        }
        let address = server.address();
        server.signal(signal);
        let (status, stdout) = server.ended().await;
        assert!(status.success(), "{status}");
        assert_eq!(stdout, format!("ready http://{address}\n"));
        // The views of the last moment were written down.
        let server = svc().serve(data.path(), &[]).await;
        let counters = rusqlite::Connection::open(data.path().join("counters.db")).unwrap();
        let visits: i64 = counters
            .query_row("SELECT count FROM visits", [], |row| row.get(0))
            .unwrap();
        assert_eq!(visits, 3);
        server.get("/page").await.expect(200);
    }
}

#[tokio::test]
async fn standard_output_has_one_line_and_the_log_is_elsewhere() {
    let data = TempDir::new().unwrap();
    let server = svc()
        .serve(data.path(), &["--dev", "--log-format", "json"])
        .await;
    let said = async || server.stderr().contains("svc_").then(|| server.stderr());
    let said = until("the credential of dev", said).await;
    let credential = said
        .split_whitespace()
        .find(|word| word.starts_with("svc_"))
        .unwrap();
    formed(credential);
    let url = server.url("/api/v1/deploy");
    let request = server.client().post(url).json(&json!({ "content": "x" }));
    request.bearer_auth(credential).answer().await.expect(201);
    server.signal(Signal::TERM);
    let (status, stdout) = server.ended().await;
    assert!(status.success());
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    // The second time there is nothing to show.
    let server = svc().serve(data.path(), &["--dev"]).await;
    let said = async || server.stderr().contains("there already").then_some(());
    until("word of the namespace that is there", said).await;
    let listed = svc()
        .run(data.path(), &["namespace", "list", "--json"])
        .await
        .json();
    assert_eq!(listed["namespaces"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn flags_beat_the_environment_beats_the_file_beats_defaults() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("svc.toml");
    let text = "landing_host = 'file.example'\ndata = '/file'\nbase_url = 'https://file.example'\n\
                trusted_proxies = ['10.0.0.0/8']\n[limits]\ndeploy_burst = 7\n";
    std::fs::write(&file, text).unwrap();
    let mut command = svc().command();
    command
        .args([
            "config",
            "--json",
            "--landing-host",
            "flag.example",
            "--config",
        ])
        .arg(&file)
        .env("SVC_LANDING_HOST", "environment.example")
        .env("SVC_DATA", "/environment");
    let effective = svc_tests::finish(command).await.json();
    for (key, value) in [
        ("landing_host", json!("flag.example")),
        ("data", json!("/environment")),
        ("guests", json!("/environment/guests")),
        ("base_url", json!("https://file.example")),
        ("sites_url", json!("https://file.example")),
        ("listen", json!("127.0.0.1:8080")),
        ("trusted_proxies", json!(["10.0.0.0/8"])),
    ] {
        assert_eq!(effective[key], value, "{key}");
    }
    assert_eq!(effective["limits"]["deploy_burst"], 7);
    assert_eq!(effective["limits"]["deploy_per_minute"], 30);
    let text = {
        let mut command = svc().command();
        command.arg("config");
        svc_tests::finish(command).await.stdout
    };
    for line in [
        "base_url = \"http://localhost:8080\"",
        "sites_domain = \"localhost:8080\"",
        "[limits]",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// The table of the specification; the last six are measured.
const LIMITS: &str = "deploy_per_minute 30, deploy_burst 15, mcp_per_minute 30, mcp_burst 15, op_per_minute 120, \
    op_burst 30, op_deployment_per_minute 300, op_deployment_burst 60, auth_per_minute 10, auth_burst 10, \
    report_per_minute 10, report_burst 5, owner_per_minute 600, owner_burst 100, body_bytes 1048576, \
    op_body_bytes 65536, database_bytes 5242880, query_rows 500, result_bytes 4194304, statement_ms 2000, \
    quick_share_seconds 604800, active_deployments 5000, backends 250, free_disk_bytes 104857600, projects_free 1, \
    projects_pro 5, sockets_per_backend 100, sockets_per_ip 20, sockets_total 25000, rooms_per_backend 100, \
    frame_bytes 16384, messages_per_second 10, outbound_queue 32, ping_seconds 25, pong_seconds 60, page_bytes 16777216";

#[tokio::test]
async fn every_number_of_the_service_is_a_setting() {
    let mut command = svc().command();
    command.args(["config", "--json"]);
    let effective = svc_tests::finish(command).await.json();
    for entry in LIMITS.split(',') {
        let (name, value) = entry.trim().split_once(' ').unwrap();
        let value: u64 = value.parse().unwrap();
        assert_eq!(effective["limits"][name], value, "{name}");
    }
    for name in [
        "render_fuel",
        "render_memory_bytes",
        "render_ms",
        "gate_fuel",
        "gate_memory_bytes",
        "gate_ms",
    ] {
        assert!(effective["limits"][name].as_u64().unwrap() > 0, "{name}");
    }
}

#[tokio::test]
async fn mistakes_in_settings_are_named() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("svc.toml");
    for (text, says) in [
        ("lissen = '127.0.0.1:1'", "lissen"),
        ("[limits]\ndeploy_brust = 1", "deploy_brust"),
        ("[limits]\ndeploy_burst = 0", "deploy_burst"),
        ("[limits]\ndeploy_burst = 'many'", "deploy_burst"),
        ("[unknown]\na = 1", "unknown"),
        ("base_url = 'https://example.com/path'", "base_url"),
        ("sites_domain = 'http://example.com'", "sites_domain"),
        ("sites_domain = 'example.com/'", "sites_domain"),
        ("sites_domain = ''", "sites_domain"),
        ("landing_host = 'me@example.com'", "landing_host"),
        ("landing_host = 'example.com:x'", "landing_host"),
        ("listen = 'nowhere'", "listen"),
        ("trusted_proxies = ['10.0.0.0/99']", "trusted_proxies"),
        ("this is no toml", "svc.toml"),
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["serve", "config"] {
            let mut start = svc().command();
            start
                .args([command, "--config"])
                .arg(&file)
                .env("SVC_DATA", directory.path().join("data"));
            if command == "serve" && !text.starts_with("listen") {
                start.args(["--listen", "127.0.0.1:0"]);
            }
            let output = svc_tests::finish(start).await;
            assert!(!output.success, "{command}: {text}");
            assert!(output.stderr.contains(says), "{command}: {}", output.stderr);
            assert_eq!(output.stdout, "");
        }
    }
    for (arguments, says) in [
        (&["serve", "--lissen", "x"][..], "--lissen"),
        (&["serve", "--listen", "x"], "--listen"),
        (&["config", "--base-url", "ftp://x"], "base_url"),
        (
            &["serve", "--config", "/nowhere/svc.toml"],
            "/nowhere/svc.toml",
        ),
        (&["check"], "data"),
    ] {
        let output = svc().run(&directory.path().join("none"), arguments).await;
        assert!(!output.success, "{arguments:?}");
        assert!(
            output.stderr.contains(says),
            "{arguments:?}: {}",
            output.stderr
        );
    }
}

#[tokio::test]
async fn a_cache_that_others_can_write_is_refused() {
    let directory = TempDir::new().unwrap();
    let cache = directory.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&cache, open).unwrap();
    let mut command = svc().command();
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("SVC_DATA", directory.path().join("data"))
        .env("SVC_CACHE", &cache);
    let output = svc_tests::finish(command).await;
    assert!(!output.success);
    assert!(output.stderr.contains("cache"), "{}", output.stderr);
}

/// Shares that are burnt and frontends that are replaced and collected while the check looks are no damage.
#[tokio::test]
async fn a_check_finds_no_damage_in_what_changes_meanwhile() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    owner.frontend(&server, &project, "room").await;
    let app = server.server().app();
    let deployments = &app.deployments;
    let content = Content::open(&server.data().join("content")).unwrap();
    let once = OnceFiles::open(&server.data().join("once")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let more = || !done.load(std::sync::atomic::Ordering::Relaxed);
    let burn = async || {
        while more() {
            let once = json!({ "content": "x", "one_time": true });
            let slug = server.slug(&once).await;
            server.post(&format!("/{slug}")).answer().await.expect(200);
        }
    };
    let replacing = async {
        let mut number = 0;
        while more() {
            number += 1;
            let room = format!("passing-{number}");
            owner.frontend(&server, &project, &room).await;
            let path = format!("/{project}/frontends/{room}");
            let put = json!({ "content": format!("# {number}") });
            owner
                .send(&server, Method::PUT, &path, &put)
                .await
                .expect(200);
            owner.delete(&server, &path).await.expect(204);
            server.advance(120);
            deployments.collect().await.unwrap();
        }
    };
    let checking = async {
        for _ in 0..100 {
            let found = svc::deployments::operators::check(&app.control, &content, Some(&once));
            assert_eq!(found.await.unwrap().errors, [] as [String; 0]);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    tokio::join!(burn(), burn(), replacing, checking);
}
