//! Guests and what is stored: the replay of a check, and pages that are rendered again.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};
use svc::config::EdgeCacheSettings;
use svc_sandbox::{World, built_in_component};
use svc_tests::guests::{RendererBehaviour, with_other_digest, write};
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tempfile::TempDir;

use crate::guests::{guest, install, page_signature, status, write_renderer};
use crate::owner::Owner;

/// A server with an owner's page, a stranger's, a protected one and two to be read once.
async fn populated_server() -> (TestServer, Owner, String) {
    // The edge does not answer, so purges stay in the queue.
    let edge = EdgeCacheSettings {
        zone_id: "zone".into(),
        api_token: "token".into(),
        api_base: "http://127.0.0.1:9/".parse().unwrap(),
    };
    let builder = TestServer::builder().system_clock();
    let server = builder.settings(|s| s.edge = Some(edge)).start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let room = json!({ "type": "markdown", "content": "# Room", "requested_slug": "room" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &room).await.expect(201);
    for body in [
        json!({ "type": "markdown", "content": "# Share", "name": "share" }),
        json!({ "type": "html", "content": "<p>html", "name": "plain" }),
        json!({ "type": "markdown", "content": "# Safe", "name": "safe", "password": "p" }),
        json!({ "type": "markdown", "content": "# Once", "name": "once", "one_time": true }),
        json!({ "type": "html", "content": "<p>once", "name": "once-html", "one_time": true }),
    ] {
        server.publish_slug(&body).await;
    }
    (server, owner, project)
}

async fn check(server: &TestServer, file: &Path, out: &Path) -> Value {
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let checked = guest(server, &["check", file, "--out", out]).await;
    serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{checked:?}"))
}

/// The folder of a page that differs: its slug, and which deployment it is.
fn difference_folder(out: &Path, slug: &str) -> PathBuf {
    let mut folders = std::fs::read_dir(out.join("pages")).unwrap();
    folders
        .find_map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            name.starts_with(&format!("{slug}-")).then(|| entry.path())
        })
        .unwrap()
}

#[tokio::test]
async fn a_check_tries_what_is_stored() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let before = server.snapshot();
    let found = check(
        &server,
        &write_renderer(&folder, "new", RendererBehaviour::Good),
        &out,
    )
    .await;
    assert_eq!(found["ok"], true, "{found}");
    let replay = &found["replay"];
    let counts = |identical, differing, newly_failing| {
        json!({
            "identical": identical, "differing": differing, "newly_failing": newly_failing,
            "newly_working": 0, "failing": 0,
        })
    };
    // HTML is what it was; of the private ones, the one of which there is a source to try.
    assert_eq!(replay["open"], counts(1, 2, 0), "{found}");
    assert_eq!(replay["private"], counts(1, 1, 0), "{found}");
    assert_eq!(replay["without_source"], 1);
    for who in ["installed", "new"] {
        let used = &replay["used"][who];
        assert!(used["calls"].as_u64() >= Some(5), "{used}");
        assert!(used["fuel"].as_u64() > Some(1000), "{used}");
    }
    assert_eq!(found["differences"], json!(out));
    let pages = svc_tests::disk::names(&out.join("pages"));
    assert_eq!(pages.len(), 4, "{pages:?}");
    let read =
        |slug, name| std::fs::read_to_string(difference_folder(&out, slug).join(name)).unwrap();
    assert_eq!(page_signature(&read("room", "new.html")), Some("new"));
    assert_eq!(page_signature(&read("share", "old.html")), None);
    assert!(read("room", "new.html").contains("data-slug=\"room\""));
    assert_eq!(server.snapshot(), before, "a check only reads");

    // The next ones need a folder of their own.
    let file = folder.path().join("new.wasm");
    let arguments = [
        "check",
        file.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    let refused = guest(&server, &arguments).await;
    assert!(refused.stderr.contains("not empty"), "{refused:?}");

    // A guest that fails on what is stored does not pass, and is not installed but in an emergency.
    let trap = json!({ "type": "markdown", "content": "trap", "requested_slug": "trap" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &trap).await.expect(201);
    let bad = crate::guests::write_renderer(&folder, "bad", RendererBehaviour::Bad);
    let second = folder.path().join("second");
    let found = check(&server, &bad, &second).await;
    assert_eq!(found["ok"], false);
    assert_eq!(found["replay"]["open"], counts(1, 2, 1), "{found}");
    let trap = difference_folder(&second, "trap");
    let why = std::fs::read_to_string(trap.join("new.error.txt"));
    assert!(why.unwrap().contains("failed"));
    assert!(trap.join("old.html").is_file());
    let refused = guest(&server, &["install", bad.to_str().unwrap()]).await;
    assert!(!refused.success);
    let report: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(report["effect"], "refused", "{report}");
    let why = report["failures"][0].as_str().unwrap();
    assert!(why.contains("fails on 1 of what is stored"), "{why}");
    assert_eq!(report["check"]["replay"]["open"], counts(1, 2, 1));
    assert_eq!(report["check"]["differences"], Value::Null, "only counted");
    assert_eq!(report["check"]["differences_left_out"], 3);
    assert_eq!(status(&server).await["render"]["built_in"], true);
    let emergency = ["install", "--no-replay", bad.to_str().unwrap()];
    let installed = guest(&server, &emergency).await.json();
    assert_eq!(installed["effect"], "switched");
    assert_eq!(installed["check"]["replay"], Value::Null);
}

#[tokio::test]
async fn a_check_of_a_gate_judges_what_is_stored() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    let backend = json!({ "ddl": "CREATE TABLE a (x)" });
    let path = format!("/{project}/backend");
    owner.post(&server, &path, &backend).await.expect(201);
    let more = json!({ "ddl": "ALTER TABLE a ADD COLUMN y" });
    owner
        .send(&server, Method::PATCH, &path, &more)
        .await
        .expect(200);
    let actions = json!({ "actions": [
        { "name": "all", "sql": "SELECT x FROM a" }, { "name": "add", "sql": "INSERT INTO a (x) VALUES (:x)" },
    ] });
    let path = format!("/{project}/backend/actions");
    owner
        .send(&server, Method::PUT, &path, &actions)
        .await
        .expect(200);
    let gate = write(
        folder.path(),
        "gate",
        &with_other_digest(built_in_component(World::Gate), b'a'),
    );
    let found = check(&server, &gate, &folder.path().join("out")).await;
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(found["world"], "gate");
    assert_eq!(found["replay"]["open"]["identical"], 4, "{found}");
    assert_eq!(found["replay"]["open"]["differing"], 0);
    assert_eq!(found["differences"], Value::Null);
    assert!(!folder.path().join("out").exists());
}

/// Waits until a rerender is done; returns how it went.
async fn wait_for_rerender(server: &TestServer) -> Value {
    let requested = guest(server, &["rerender"]).await.json();
    assert_eq!(requested["server_running"], true);
    wait_for_requested_rerender(server).await
}

/// Waits until a rerender that was asked for has finished.
async fn wait_for_requested_rerender(server: &TestServer) -> Value {
    let done = async || {
        let rerender = status(server).await["rerender"].clone();
        rerender["finished_at"].is_string().then_some(rerender)
    };
    wait_until("pages to be rendered again", done).await
}

/// Installs a renderer that fails, or is slow, on what is stored.
async fn install_without_check(server: &TestServer, file: &Path) {
    let arguments = ["install", "--no-replay", file.to_str().unwrap()];
    let installed = guest(server, &arguments).await.json();
    assert_eq!(installed["effect"], "switched");
}

/// Publishes Markdown as an owner's page, of which its source is the slug, too; returns where the project's pages are.
async fn publish_page(server: &TestServer, owner: &Owner, project: &str, source: &str) -> String {
    let page = json!({ "type": "markdown", "content": source, "requested_slug": source });
    let path = format!("/{project}/frontends");
    owner.post(server, &path, &page).await.expect(201);
    path
}

#[tokio::test]
async fn pages_are_rendered_again_by_the_guest_that_serves() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    let get = async |path: &str| server.get(path).answer().await.expect(200);
    let old = get("/room").await;
    let revisions = format!("/{project}/frontends/room/revisions");
    let active = owner.get(&server, &revisions).await.json()["active_revision_id"].clone();
    let draft = json!({ "base_revision_id": active, "content": "# Draft" });
    let draft = owner
        .post(&server, &revisions, &draft)
        .await
        .expect(200)
        .json();
    let preview = draft["preview_url"].as_str().unwrap();
    let preview = &preview[preview.find("/_preview").unwrap()..];
    let previewed = get(preview).await;
    read_purges(&server, true).await;

    install(
        &server,
        &write_renderer(&folder, "new", RendererBehaviour::Good),
    )
    .await;
    assert_eq!(
        page_signature(get("/room").await.text()),
        None,
        "only when asked to"
    );
    let done = wait_for_rerender(&server).await;
    let counts = ["total", "changed", "unchanged", "failed", "skipped"].map(|name| &done[name]);
    assert_eq!(
        counts,
        [4, 3, 1, 0, 0].map(|count| json!(count)).each_ref(),
        "{done}"
    );
    let new = get("/room").await;
    assert_eq!(page_signature(new.text()), Some("new"));
    assert!(new.text().contains("data-slug=\"room\""));
    assert_ne!(new.header("etag"), old.header("etag"));
    assert_eq!(page_signature(get("/share").await.text()), Some("new"));
    assert_eq!(get("/plain").await.text(), "<p>html");
    let cookie = server.unlock("safe", "p").await;
    let safe = server.get("/safe").header("cookie", cookie).answer().await;
    assert_eq!(page_signature(safe.expect(200).text()), Some("new"));
    // Immutable pages have not changed, nor those without a source.
    assert_eq!(get(preview).await.body, previewed.body);
    let once = server.post("/once").answer().await.expect(200);
    assert_eq!(page_signature(once.text()), None);
    // The edge is told of the owner's page, whose bytes are others, and of nothing else.
    let queued = read_purges(&server, false).await;
    assert!(
        !queued.is_empty() && queued.iter().all(|prefix| prefix.ends_with("/room")),
        "{queued:?}"
    );
    let checked = server
        .command(&crate::svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(checked["errors"], json!([]));

    // A second time there is nothing left to do.
    let done = wait_for_rerender(&server).await;
    assert_eq!(done["total"], 0, "{done}");
}

#[tokio::test]
async fn a_page_that_changes_while_it_is_rendered_again_is_left_alone() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    let path = publish_page(&server, &owner, &project, "slow").await;
    install_without_check(
        &server,
        &write_renderer(&folder, "new", RendererBehaviour::Slow),
    )
    .await;
    guest(&server, &["rerender"]).await.json();
    // It is the newest, and so the last: a guest that works when all others are done works on it.
    let busy = async || {
        let done = &status(&server).await["rerender"];
        let others = ["changed", "unchanged"].map(|name| done[name].as_u64());
        let metrics = server.server().app().metrics.encode().unwrap();
        let works = metrics.contains("svc_guest_instances 1\n");
        (others == [Some(3), Some(1)] && works).then_some(())
    };
    wait_until("the slow page to be rendered", busy).await;
    let (put, path) = (json!({ "content": "# Quick" }), format!("{path}/slow"));
    let answer = owner.send(&server, Method::PUT, &path, &put);
    answer.await.expect(200);
    let done = wait_for_requested_rerender(&server).await;
    assert_eq!(done["skipped"], 1, "{done}");
    let page = server.get("/slow").answer().await.expect(200);
    assert!(page.text().contains("# Quick"), "{}", page.text());
}

#[tokio::test]
async fn a_page_that_the_guest_fails_on_stays_as_it_is() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    publish_page(&server, &owner, &project, "trap").await;
    let before = server.get("/trap").answer().await.expect(200);
    // The guest before it fails there, too: or it would be rolled back by itself.
    for sign in ["first", "second"] {
        install_without_check(
            &server,
            &write_renderer(&folder, sign, RendererBehaviour::Bad),
        )
        .await;
    }
    let done = wait_for_rerender(&server).await;
    assert_eq!(
        (&done["total"], &done["failed"]),
        (&json!(5), &json!(1)),
        "{done}"
    );
    let after = server.get("/trap").answer().await.expect(200);
    assert_eq!(after.body, before.body);
    let room = server.get("/room").answer().await.expect(200);
    assert_eq!(page_signature(room.text()), Some("second"));
}

#[tokio::test]
async fn pages_of_a_rerender_are_made_again_when_its_guest_falls_afterwards() {
    let (server, owner, project) = populated_server().await;
    let folder = TempDir::new().unwrap();
    let get = async |path: &str| server.get(path).answer().await.expect(200);
    let old = get("/room").await;
    install_without_check(
        &server,
        &write_renderer(&folder, "bad", RendererBehaviour::Bad),
    )
    .await;
    let done = wait_for_rerender(&server).await;
    assert_eq!(done["changed"], 3, "{done}");
    assert_eq!(page_signature(get("/room").await.text()), Some("bad"));
    // It fails on a page that comes later, and loses its place.
    publish_page(&server, &owner, &project, "trap").await;
    let again = async || {
        let rerender = status(&server).await["rerender"].clone();
        let another = rerender["requested_at"] != done["requested_at"];
        (another && rerender["finished_at"].is_string()).then_some(rerender)
    };
    let again = wait_until("the pages to be made again", again).await;
    let counts = ["total", "changed", "unchanged", "failed", "skipped"].map(|name| &again[name]);
    assert_eq!(
        counts,
        [4, 3, 1, 0, 0].map(|count| json!(count)).each_ref(),
        "{again}"
    );
    assert_eq!(get("/room").await.text(), old.text());
    for path in ["/share", "/trap"] {
        assert_eq!(page_signature(get(path).await.text()), None, "{path}");
    }
    // A guest that falls without having made pages again leaves them alone.
    install_without_check(
        &server,
        &write_renderer(&folder, "worse", RendererBehaviour::Bad),
    )
    .await;
    publish_page(&server, &owner, &project, "trap").await;
    let fallen = async || {
        let history = status(&server).await["render"]["history"].clone();
        let falls = history.as_array()?.iter();
        let falls = falls.filter(|change| change["kind"] == "automatic").count();
        (falls == 2).then_some(())
    };
    wait_until("the second fall to be written down", fallen).await;
    let last = status(&server).await["rerender"].clone();
    assert_eq!(last["requested_at"], again["requested_at"], "{last}");
}

/// Reads the purges that the edge is to be sent; forgets them, if that is wanted.
async fn read_purges(server: &TestServer, forget: bool) -> Vec<String> {
    let control = &server.server().app().control;
    let prefixes = control.read(|c| {
        c.prepare("SELECT prefix FROM purges")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<Vec<String>, _>>()
    });
    let prefixes = prefixes.await.unwrap();
    if forget {
        let deleted = control.write(|tx| {
            tx.execute("DELETE FROM purges", [])
                .map(|_| ())
                .map_err(svc::control::Error::from)
        });
        deleted.await.unwrap();
    }
    prefixes
}
