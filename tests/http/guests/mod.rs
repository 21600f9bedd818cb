//! Guests that operators check, install and roll back while the server runs, and those that are rolled back by themselves.

mod changes;
mod interfaces;

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use svc::guests::status::ServerPresenceLock;
use svc_sandbox::{GuestDigest, World, built_in_component};
use svc_tests::guests::{RendererBehaviour, parse, renderer, with_other_digest, write};
use svc_tests::{Answer, Output, ReadAnswer, TestServer, hostile, run_command, wait_until};
use tempfile::TempDir;

use crate::owner::Owner;
use crate::project_fixture::ProjectFixture;
use crate::svc;

async fn start() -> TestServer {
    TestServer::builder().system_clock().start().await
}

/// Runs `svc guest …` beside the server.
pub(crate) async fn guest(server: &TestServer, arguments: &[&str]) -> Output {
    let arguments = [&["guest"], arguments, &["--json"]].concat();
    server.command(&svc(), &arguments).await
}

pub(crate) async fn install(server: &TestServer, file: &Path) -> Value {
    let installed = guest(server, &["install", file.to_str().unwrap()]).await;
    let installed = installed.json();
    assert_eq!(installed["effect"], "switched", "{installed}");
    assert_eq!(installed["failures"], json!([]));
    installed
}

pub(crate) async fn status(server: &TestServer) -> Value {
    guest(server, &["status"]).await.json()
}

/// A renderer in a file of its own.
pub(crate) fn write_renderer(
    folder: &TempDir,
    sign: &str,
    behaviour: RendererBehaviour,
) -> PathBuf {
    write(folder.path(), sign, &renderer(sign, behaviour))
}

/// Publishes Markdown; returns the page.
async fn page(server: &TestServer, content: &str) -> Answer {
    let body = json!({ "type": "markdown", "content": content });
    let slug = server.publish_slug(&body).await;
    server.get(&format!("/{slug}")).answer().await.expect(200)
}

/// Finds the guest that made a page, as a whole; the built-in one does not sign.
#[track_caller]
pub(crate) fn page_signature(page: &str) -> Option<&str> {
    let sign = page.split("begun by ").nth(1)?.split('<').next().unwrap();
    for part in ["begun", "drawn", "ended"] {
        let found = page.matches(&format!("{part} by {sign}<")).count();
        assert_eq!(found, 1, "{part} in {page}");
    }
    assert_eq!(page.matches(" by ").count(), 3, "{page}");
    Some(sign)
}

fn digest(component: &[u8]) -> String {
    GuestDigest::of(component).to_string()
}

#[tokio::test]
async fn a_guest_is_installed_and_rolled_back_while_the_server_runs() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let (one, two) = (
        renderer("one", RendererBehaviour::Good),
        renderer("two", RendererBehaviour::Good),
    );
    let built_in = digest(built_in_component(World::Render));
    assert_eq!(page_signature(page(&server, "# x").await.text()), None);

    // The server says what it has loaded with its next look.
    let said = async || {
        let status = status(&server).await;
        status["render"]["serving"].is_string().then_some(status)
    };
    let before = wait_until("the server to say who serves", said).await;
    assert_eq!(before["server_running"], true);
    let render = &before["render"];
    assert_eq!(render["digest"], json!(built_in));
    assert_eq!(render["serving"], json!(built_in));
    assert_eq!(render["built_in"], true);
    assert_eq!(render["interface"], "svc:render@2.0.0");
    assert_eq!(render["history"], json!([]));

    let installed = install(&server, &write(folder.path(), "one", &one)).await;
    assert_eq!(installed["digest"], json!(digest(&one)));
    assert_eq!(installed["previous"], json!(built_in));
    assert_eq!(installed["check"]["ok"], true);
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("one")
    );
    let file = write(folder.path(), "two", &two);
    install(&server, &file).await;
    assert_eq!(
        page_signature(page(&server, "# <x>").await.text()),
        Some("two")
    );
    // Once more is no change.
    assert_eq!(install(&server, &file).await["digest"], json!(digest(&two)));

    let counted = async || {
        let status = status(&server).await;
        (status["render"]["usage"]["calls"].as_u64() >= Some(2)).then_some(status)
    };
    let now = wait_until("the calls to be counted", counted).await;
    let render = &now["render"];
    assert_eq!(render["serving"], json!(digest(&two)));
    assert_eq!(render["previous"], json!(digest(&one)));
    assert_eq!(render["from"], json!(file));
    assert!(render["installed_at"].is_string() && render["trial_until"].is_string());
    assert!(
        render["usage"]["fuel"]["p99"].as_u64() > Some(100),
        "{render}"
    );
    assert_eq!(render["usage"]["traps"], 0);
    assert_eq!(render["history"].as_array().unwrap().len(), 2);
    let text = server.command(&svc(), &["guest", "status"]).await;
    assert!(text.stdout.contains(&digest(&two)), "{text:?}");

    let back = guest(&server, &["rollback", "render"]).await.json();
    assert_eq!(back["effect"], "switched");
    assert_eq!(back["digest"], json!(digest(&one)));
    assert_eq!(back["previous"], json!(digest(&two)));
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("one")
    );
    let server = server.restart().await;
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("one")
    );
    let back = guest(&server, &["rollback", "render"]).await.json();
    assert_eq!(
        (&back["built_in"], &back["digest"]),
        (&json!(true), &json!(built_in))
    );
    assert_eq!(page_signature(page(&server, "# x").await.text()), None);
    let none = guest(&server, &["rollback", "render"]).await;
    assert!(
        !none.success && none.stderr.contains("none before"),
        "{none:?}"
    );
}

#[tokio::test]
async fn without_a_server_a_guest_serves_from_the_next_start() {
    let (server, folder) = (TestServer::start().await, TempDir::new().unwrap());
    let file = write_renderer(&folder, "early", RendererBehaviour::Good);
    let install = ["guest", "install", file.to_str().unwrap(), "--json"];
    let server = server
        .restart_after_change(async |data| {
            let installed = svc().run(data, &install).await.json();
            assert_eq!(installed["effect"], "next_start");
            let status = svc().run(data, &["guest", "status", "--json"]).await.json();
            assert_eq!(status["server_running"], false);
            assert_eq!(status["render"]["digest"], installed["digest"]);
        })
        .await;
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("early")
    );
}

/// A server follows one directory of guests: what is chosen in another has no effect, and must not look as if it had.
#[tokio::test]
async fn another_directory_of_guests_is_refused() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let file = write_renderer(&folder, "elsewhere", RendererBehaviour::Good);
    let (file, other) = (file.to_str().unwrap(), folder.path().join("guests"));
    let theirs = server.data().canonicalize().unwrap().join("guests");
    for command in [
        &["status"][..],
        &["check", file],
        &["install", file],
        &["rollback", "render"],
    ] {
        let elsewhere = ["--guests", other.to_str().unwrap()];
        let refused = guest(&server, &[command, &elsewhere].concat()).await;
        assert!(!refused.success, "{refused:?}");
        for named in [&other, &theirs] {
            let named = named.to_str().unwrap();
            assert!(refused.stderr.contains(named), "{refused:?}");
        }
    }
    assert!(!other.exists());
    // By another name it is the same.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(server.data(), &link).unwrap();
    let same = link.join("guests");
    let status = guest(&server, &["status", "--guests", same.to_str().unwrap()]).await;
    assert_eq!(status.json()["server_running"], true);
}

/// No command needs a home: where there is none, what compiles has its cache in the data directory.
#[tokio::test]
async fn only_what_compiles_needs_a_cache() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let file = write(
        folder.path(),
        "good",
        &renderer("good", RendererBehaviour::Good),
    );
    let cache = server.data().join("cache");
    for (arguments, compiles) in [
        (&["status"][..], false),
        (&["rollback", "render"], false),
        (&["rerender"], false),
        (&["check", file.to_str().unwrap()], true),
    ] {
        let mut command = svc().command();
        command.env_clear().env("SVC_DATA", server.data());
        // There is a home in the list of users, too, that must not count here.
        command.env("HOME", "relative").arg("guest").args(arguments);
        command.current_dir(folder.path());
        let output = run_command(command).await;
        assert!(
            !output.stderr.contains("cache"),
            "{arguments:?}: {output:?}"
        );
        assert_eq!(cache.exists(), compiles, "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn what_cannot_serve_is_refused_and_why() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let good = renderer("good", RendererBehaviour::Good);
    let text = parse;
    let mut other_version = good.clone();
    for at in 0..other_version.len() {
        if other_version[at..].starts_with(b"svc:render/renderer@2.0.0") {
            other_version[at + 20] = b'7';
        }
    }
    for (name, component, why) in [
        ("text", b"hello".to_vec(), "it is no component"),
        ("nothing", text("(component)"), "exports nothing"),
        (
            "files",
            text(
                r#"(component (import "wasi:filesystem/preopens@0.2.6" (instance (export "get-directories" (func)))))"#,
            ),
            "exports nothing",
        ),
        ("version", other_version, "svc:render@7.0.0"),
        (
            "stub",
            text(
                r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f"))) (instance $x (export "render" (func $f)))
                (export "svc:render/renderer@2.0.0" (instance $x)))"#,
            ),
            "not a render guest",
        ),
        (
            "sockets",
            text(
                r#"(component (import "wasi:sockets/network@0.2.6" (instance (export "f" (func))))
                (core module $m (func (export "f"))) (core instance $i (instantiate $m))
                (func $f (canon lift (core func $i "f"))) (instance $x (export "check" (func $f)))
                (export "svc:gate/judge@1.0.0" (instance $x)))"#,
            ),
            "wasi:sockets/network@0.2.6",
        ),
    ] {
        let file = write(folder.path(), name, &component);
        for command in ["check", "install"] {
            let refused = guest(&server, &[command, file.to_str().unwrap()]).await;
            assert!(!refused.success, "{name}: {refused:?}");
            let mut report: Value = serde_json::from_str(&refused.stdout).unwrap();
            if command == "install" {
                assert_eq!(report["effect"], "refused", "{name}: {report}");
                assert!(report["failures"][0].to_string().contains(why), "{report}");
                report = report["check"].take();
            }
            let reasons = report["refused"].to_string();
            assert!(reasons.contains(why), "{name}: {report}");
            assert_eq!(report["ok"], false);
        }
    }
    let none = guest(&server, &["check", "/nowhere.wasm"]).await;
    assert!(!none.success && !none.stderr.is_empty());
    assert_eq!(status(&server).await["render"]["built_in"], true);
}

#[tokio::test]
async fn a_renderer_whose_pages_break_the_contract_is_refused() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let good = String::from_utf8_lossy(&renderer("plain", RendererBehaviour::Good)).into_owned();
    assert!(good.contains("<!doctype html>"));
    let mut bad = renderer("plain", RendererBehaviour::Good);
    let at = bad
        .windows(9)
        .position(|window| window == b"<p>begun ")
        .unwrap();
    // Of the same length, so that all else stays where it is: an element that loads something from elsewhere.
    bad[at..at + 9].copy_from_slice(b"<iframe> ");
    let file = write(folder.path(), "bad", &bad);
    let refused = guest(&server, &["install", file.to_str().unwrap()]).await;
    assert!(!refused.success);
    let report: Value = serde_json::from_str(&refused.stdout).unwrap();
    let corpus = &report["check"]["corpus"];
    assert!(corpus["failed"].as_u64() > Some(5), "{report}");
    assert!(
        corpus["failures"][0]["detail"]
            .to_string()
            .contains("iframe")
    );
    let text = server
        .command(&svc(), &["guest", "install", file.to_str().unwrap()])
        .await;
    assert!(text.stdout.contains("not installed"), "{text:?}");
    assert_eq!(status(&server).await["render"]["built_in"], true);
}

#[tokio::test]
async fn another_gate_serves_and_judges_actions_again() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let backend = json!({ "ddl": "CREATE TABLE a (x)" });
    let path = format!("/{project}/backend");
    owner.post(&server, &path, &backend).await.expect(201);
    let actions = json!({ "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM a" }] });
    let put = http::Method::PUT;
    let path = format!("/{project}/backend/actions");
    owner.send(&server, put, &path, &actions).await.expect(200);
    let room = json!({ "type": "html", "content": "x", "requested_slug": "room" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &room).await.expect(201);
    let call = async || {
        let call = server.json("/room/api/op", &json!({ "action": "count" }));
        call.answer().await.expect(200).json()["rows"][0]["n"].clone()
    };
    assert_eq!(call().await, 0);

    let gate = with_other_digest(built_in_component(World::Gate), b'a');
    let installed = install(&server, &write(folder.path(), "gate", &gate)).await;
    assert_eq!(installed["world"], "gate");
    assert!(installed["check"]["corpus"]["cases"].as_u64() > Some(700));
    assert_eq!(call().await, 0);
    let judged = async || {
        let control = &server.server().app().control;
        let read = control.read(|c| {
            c.query_row("SELECT gate FROM actions", [], |row| {
                row.get::<_, [u8; 32]>(0)
            })
        });
        GuestDigest::from_bytes(read.await.unwrap())
    };
    assert_eq!(judged().await, GuestDigest::of(&gate));
    guest(&server, &["rollback", "gate"]).await.json();
    assert_eq!(call().await, 0);
    assert_eq!(
        judged().await,
        GuestDigest::of(built_in_component(World::Gate))
    );
}

/// Restarts a server after a change of its data directory, and waits until its guests are loaded.
async fn restart_ready(server: TestServer, meanwhile: impl AsyncFnOnce(&Path)) -> TestServer {
    let server = server.restart_after_change(meanwhile).await;
    let ready = async || (server.get("/readyz").answer().await.status == 200).then_some(());
    wait_until("the guests to be loaded", ready).await;
    server
}

#[tokio::test]
async fn what_another_gate_refuses_it_judges_once_for_all_visitors_and_in_their_flow() {
    let fixture = ProjectFixture::new("CREATE TABLE a (x)").await;
    let actions = json!({ "actions": [{ "name": "count", "sql": "SELECT count(*) AS n FROM a" }] });
    let defined = fixture.send(Method::PUT, "/actions", &actions).await;
    defined.expect(200);
    // As if an earlier gate had allowed what this one does not.
    let changed = restart_ready(fixture.server, async |data| {
        let control = rusqlite::Connection::open(data.join("control.db")).unwrap();
        let sql = "UPDATE actions SET sql = 'DROP TABLE a', gate = zeroblob(32)";
        assert_eq!(control.execute(sql, ()).unwrap(), 1);
    });
    let server = changed.await;
    for _ in 0..3 {
        let call = server.json("/room/api/op", &json!({ "action": "count" }));
        call.answer().await.problem(400, "statement_refused");
    }
    let metrics = server.server().app().metrics.encode().unwrap();
    for once in [
        r#"svc_guest_calls_total{function="check",outcome="ok"} 1"#,
        r#"svc_worker_wait_seconds_count{lane="checks",class="stranger"} 1"#,
    ] {
        assert!(metrics.lines().any(|line| line == once), "{metrics}");
    }
}

#[tokio::test]
async fn all_actions_of_a_request_have_one_budget() {
    let builder = TestServer::builder().limits(|limits| limits.gate_fuel = 50_000_000);
    let mut fixture = ProjectFixture::on_server(builder.start().await, "CREATE TABLE a (x)").await;
    let changed = restart_ready(fixture.server, async |data| {
        let folder = data.join("guests").join("gate");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("000001-hostile.wasm"), hostile::gate()).unwrap();
    });
    fixture.server = changed.await;
    // By this letter the gate works without end.
    let entry = |number: usize| json!({ "name": format!("a{number}"), "sql": "l" });
    let actions: Vec<Value> = (0..200).map(entry).collect();
    let actions = json!({ "actions": actions });
    let answer = fixture.send(Method::PUT, "/actions", &actions).await;
    let problem = answer.problem(400, "invalid_request");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 200);
    let metrics = fixture.server.server().app().metrics.encode().unwrap();
    let calls = r#"svc_guest_calls_total{function="check",outcome="fuel"} 4"#;
    assert!(metrics.lines().any(|line| line == calls), "{metrics}");
}

#[tokio::test]
async fn a_guest_that_fails_where_the_one_before_does_not_is_rolled_back() {
    for (word, told) in [
        ("trap", "it trapped"),
        ("spin", "its budget of fuel"),
        ("lies", "it trapped"),
        ("deny", "does not know a type of content"),
    ] {
        let builder = TestServer::builder().system_clock();
        let server = builder.limits(|l| l.render_fuel = 50_000_000).start().await;
        let folder = TempDir::new().unwrap();
        install(
            &server,
            &write_renderer(&folder, "good", RendererBehaviour::Good),
        )
        .await;
        let installed = install(
            &server,
            &write_renderer(&folder, "bad", RendererBehaviour::Bad),
        )
        .await;
        assert_eq!(
            page_signature(page(&server, "# x").await.text()),
            Some("bad")
        );

        // The caller gets a page of the guest that can render it.
        let rescued = page(&server, &format!("{word} me")).await;
        assert_eq!(page_signature(rescued.text()), Some("good"), "{word}");
        assert_eq!(
            page_signature(page(&server, "# x").await.text()),
            Some("good")
        );
        let fallen = async || {
            let status = status(&server).await;
            let fallen = status["render"]["history"].as_array()?.last()?["kind"] == "automatic";
            fallen.then_some(status)
        };
        let status = wait_until("the fall to be written down", fallen).await;
        let render = &status["render"];
        assert_eq!(render["digest"], installed["previous"], "{word}");
        let why = render["history"][2]["why"].as_str().unwrap();
        assert!(
            why.contains("guest before") && why.contains(told),
            "{word}: {why}"
        );
        let metrics = server.server().app().metrics.encode().unwrap();
        let line = r#"svc_guest_rollbacks_total{world="render"} 1"#;
        assert!(metrics.contains(line), "{metrics}");
        // A restart does not bring it back.
        let server = server.restart().await;
        assert_eq!(
            page_signature(page(&server, "# x").await.text()),
            Some("good")
        );
    }
}

#[tokio::test]
async fn a_guest_that_a_rollback_puts_back_is_still_on_trial() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    install(
        &server,
        &write_renderer(&folder, "bad", RendererBehaviour::Bad),
    )
    .await;
    install(
        &server,
        &write_renderer(&folder, "good", RendererBehaviour::Good),
    )
    .await;
    let back = guest(&server, &["rollback", "render"]).await.json();
    assert_eq!(back["effect"], "switched");
    let render = status(&server).await["render"].clone();
    assert!(render["trial_until"].is_string(), "{render}");
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("bad")
    );
    // The one before it stands by: the built-in one, and not the one that was rolled back.
    let rescued = page(&server, "trap me").await;
    assert_eq!(page_signature(rescued.text()), None);
    assert_eq!(page_signature(page(&server, "# x").await.text()), None);
}
