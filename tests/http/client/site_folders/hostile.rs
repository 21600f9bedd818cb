//! Servers whose sites have files that lead out of a folder, or other bytes than they say.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::{Value, json};
use svc_tests::run_command;

use super::super::failures::serve_router;
use super::super::{ClientFixture, list_files};

const ID: &str = "01a1fc28-c57b-71f4-90db-2871ff5bd43a";

/// Starts a server with a site that has these files.
async fn serve_site(files: Value) -> SocketAddr {
    let answer = move |request: Request| {
        let files = files.clone();
        async move { answer(request.uri().path(), &files) }
    };
    serve_router(Router::new().fallback(any(answer))).await
}

fn answer(path: &str, files: &Value) -> Response {
    let digest = "0".repeat(64);
    let page = json!({
        "id": ID, "slug": "app", "url": "http://shop-acme.localhost/app", "type": "site", "title": "App",
        "state": "active", "visits": 0, "content_sha256": digest, "active_revision_id": ID,
    });
    let project = json!({
        "id": ID, "name": "Shop", "host_label": "shop-acme", "description": null, "home": null,
        "url": "http://shop-acme.localhost", "backend": null,
    });
    let document = match path.rsplit('/').next().unwrap_or_default() {
        "projects" => json!({ "projects": [project] }),
        "frontends" => json!({ "frontends": [page] }),
        "content" => {
            json!({ "type": "site", "content_sha256": digest, "revision_id": ID, "files": files, "options": {} })
        }
        "revisions" => json!({ "active_revision_id": ID, "revisions": [] }),
        "catalog" => json!({ "products": [] }),
        _ => return "theirs".into_response(),
    };
    axum::Json(document).into_response()
}

#[tokio::test]
async fn no_file_of_a_server_leads_out_of_the_folder() {
    let digest = svc::content::Digest::of(b"theirs").to_string();
    let file = json!({ "sha256": digest, "size": 6, "media_type": "text/plain" });
    let lie = json!({ "sha256": "1".repeat(64), "size": 6, "media_type": "text/plain" });
    let huge = json!({ "sha256": digest, "size": u64::MAX, "media_type": "text/plain" });
    let fixture = ClientFixture::new().await;
    fixture.write("work/mine/a.txt", "mine");
    std::os::unix::fs::symlink("../victim", fixture.path_of("work/app")).unwrap();
    fixture.write("victim/a.txt", "mine");
    let before = list_files(fixture.folder.path());
    for (folder, path, said) in [
        ("new", "../victim/a.txt", &file),
        ("new", "/etc/svc-was-here", &file),
        ("new", "a/../../../victim/a.txt", &file),
        ("new", ".bashrc", &file),
        ("new", ".git/hooks/post-checkout", &file),
        ("new", "a\\..\\b", &file),
        ("new", "a\u{1b}[2J", &file),
        ("new", "a.txt", &lie),
        ("new", "a.txt", &huge),
        // The folder of the site is a link.
        ("work", "a.txt", &file),
    ] {
        let server = serve_site(json!({ path: said })).await;
        let mut command = fixture.command(&["pull", folder, "--project", "Shop", "--yes"]);
        command.env("SVC_SERVER", format!("http://{server}"));
        let refused = run_command(command).await;
        assert!(!refused.success, "{path}: {refused:?}");
        assert!(!refused.stderr.contains('\u{1b}'), "{path}: {refused:?}");
        let _ = std::fs::remove_dir(fixture.path_of("new"));
        assert_eq!(list_files(fixture.folder.path()), before, "{path}");
        assert_eq!(fixture.read("victim/a.txt"), "mine");
    }
    // What is told rightly is written.
    let server = serve_site(json!({ "a/b.txt": file })).await;
    let mut command = fixture.command(&["pull", "new", "--project", "Shop"]);
    command.env("SVC_SERVER", format!("http://{server}"));
    let pulled = run_command(command).await;
    assert!(pulled.success, "{pulled:?}");
    assert_eq!(fixture.read("new/app/a/b.txt"), "theirs");
}

#[tokio::test]
async fn a_pull_writes_through_no_link_and_nothing_that_is_never_published() {
    let digest = svc::content::Digest::of(b"theirs").to_string();
    let file = json!({ "sha256": digest, "size": 6, "media_type": "text/plain" });
    let fixture = ClientFixture::new().await;
    fixture.write("work/app/index.html", "mine");
    fixture.write("work/app/v2/a.txt", "mine");
    fixture.write("victim/a.txt", "mine");
    for (target, link) in [
        ("index.html", "home.html"),
        ("v2", "latest"),
        ("../../victim", "out"),
    ] {
        let link = fixture.path_of(&format!("work/app/{link}"));
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    let server = serve_site(json!({
        "home.html": file, "latest/a.txt": file, "v2/a.txt": file, "out/a.txt": file, "new.txt": file,
        "node_modules/x.js": file, "docs/node_modules/y.js": file, "svc.toml": file,
    }))
    .await;
    let pull = async || {
        let mut command = fixture.command(&["pull", "work", "--yes"]);
        if !fixture.path_of("work/svc.toml").exists() {
            command = fixture.command(&["pull", "work", "--project", "Shop", "--yes"]);
        }
        command.env("SVC_SERVER", format!("http://{server}"));
        let pulled = run_command(command).await;
        assert!(pulled.success, "{pulled:?}");
        pulled
    };
    let pulled = pull().await;
    for said in [
        "Not written: home.html, out/a.txt of",
        "Left out: docs/node_modules/y.js, node_modules/x.js, svc.toml of",
        "Only work/app has index.html:",
    ] {
        assert!(pulled.stderr.contains(said), "{said}: {pulled:?}");
    }
    for (path, text) in [
        ("work/app/index.html", "mine"),
        ("work/app/home.html", "mine"),
        ("victim/a.txt", "mine"),
        ("work/app/v2/a.txt", "theirs"),
        ("work/app/latest/a.txt", "theirs"),
        ("work/app/new.txt", "theirs"),
    ] {
        assert_eq!(fixture.read(path), text, "{path}");
    }
    for path in ["node_modules", "docs", "svc.toml"] {
        assert!(!fixture.path_of(&format!("work/app/{path}")).exists());
    }
    let again = pull().await;
    assert!(again.stdout.contains("nothing to do"), "{again:?}");
}
