//! Single files of a site: published, deleted and read by their paths, and all of them as one archive.

use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer};

use super::{SiteFixture, sha256};

async fn put(fixture: &SiteFixture, path: &str, bytes: Vec<u8>) -> Answer {
    let path = format!(
        "/api/v1/projects/{}/frontends/site/files/{path}",
        fixture.project
    );
    let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
    let request = request.header("content-length", bytes.len());
    request.body(bytes).answer().await
}

#[tokio::test]
async fn a_file_is_published_by_itself() {
    let fixture =
        SiteFixture::with_files(&[("index.html", "<title>One</title>"), ("a.txt", "a")]).await;
    let before = fixture.active().await;
    let live = put(&fixture, "docs/b%20c.txt", b"b".to_vec())
        .await
        .expect(200)
        .json();
    assert_eq!(live["site"]["files"], 3);
    assert_eq!(fixture.read("/site/docs/b%20c.txt").await, "b");
    let live = put(&fixture, "index.html", b"<title>Two</title>".to_vec())
        .await
        .expect(200)
        .json();
    assert_eq!(live["title"], "Two");
    let large = vec![7; 2_000_000];
    put(&fixture, "large.bin", large.clone()).await.expect(200);
    let read = fixture
        .send(Method::GET, "/files/large.bin", None)
        .await
        .expect(200);
    assert!(read.body == large);
    assert_eq!(
        read.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(read.header("content-disposition"), Some("attachment"));
    let tag = format!("\"{}\"", sha256(&large));
    assert_eq!(read.header("etag"), Some(&*tag));
    let older = format!("/files/index.html?revision_id={before}");
    let older = fixture.send(Method::GET, &older, None).await.expect(200);
    assert_eq!(older.text(), "<title>One</title>");
    for path in ["../x", "a.txt/b", "_svc/x", ".env"] {
        let refused = put(&fixture, &path.replace("../", "%2e%2e/"), b"x".to_vec()).await;
        assert!(
            [400, 404].contains(&refused.status),
            "{path}: {}",
            refused.text()
        );
    }
    let gone = fixture
        .send(Method::DELETE, "/files/a.txt", None)
        .await
        .expect(200)
        .json();
    assert_eq!(gone["site"]["files"], 3);
    assert_eq!(fixture.get("/site/a.txt").await.status, 404);
    for below in ["/files/a.txt", "/files/none"] {
        fixture
            .send(Method::DELETE, below, None)
            .await
            .problem(404, "not_found");
        fixture
            .send(Method::GET, below, None)
            .await
            .problem(404, "not_found");
    }
    fixture
        .send(Method::DELETE, "/files/large.bin", None)
        .await
        .expect(200);
    fixture
        .send(Method::DELETE, "/files/docs/b%20c.txt", None)
        .await
        .expect(200);
    let last = fixture
        .send(Method::DELETE, "/files/index.html", None)
        .await;
    last.problem(400, "invalid_request");
}

#[tokio::test]
async fn an_address_with_a_path_that_no_site_has_is_told_so() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    for (encoded, path) in [
        ("a%5Cb", "a\\b"),
        ("a//b", "a//b"),
        ("%2e%2e/x", "../x"),
        ("a/../x", "a/../x"),
        ("a%00b", "a\0b"),
        ("a%0Ab", "a\nb"),
        ("a%2Fb", "a/b"),
        ("a%ff", "a\u{fffd}"),
        ("a/", "a/"),
        (".env", ".env"),
        ("_svc/x", "_svc/x"),
    ] {
        let request = format!(
            "PUT /api/v1/projects/{}/frontends/site/files/{encoded} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
            fixture.project,
            fixture.server.address(),
            fixture.owner.credential
        );
        let refused = fixture.server.raw(request).await;
        let problem = refused.problem(400, "path_refused");
        assert_eq!(problem["path"], path, "{problem}");
        assert!(problem["reason"].is_string(), "{problem}");
    }
    let content = fixture.send(Method::GET, "/content", None).await.json();
    assert_eq!(content["files"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn files_that_are_published_at_once_are_all_there() {
    let fixture = SiteFixture::with_files(&[("index.html", "x")]).await;
    let publish = |number: usize| {
        put(
            &fixture,
            format!("f{number}.txt").leak(),
            vec![b'0'; number],
        )
    };
    let published = futures_util::future::join_all((0..6).map(publish)).await;
    for answer in published {
        answer.expect(200);
    }
    let content = fixture.send(Method::GET, "/content", None).await.json();
    assert_eq!(content["files"].as_object().unwrap().len(), 7);
}

#[tokio::test]
async fn all_files_come_as_one_archive() {
    let long = format!("{}/{}.txt", "folder".repeat(20), "name".repeat(20));
    let fixture =
        SiteFixture::with_files(&[("index.html", "<p>x"), (&long, "long"), ("empty", "")]).await;
    let large = vec![9; 1_500_000];
    put(&fixture, "large.bin", large).await.expect(200);
    let archive = fixture
        .send(Method::GET, "/archive", None)
        .await
        .expect(200);
    assert_eq!(archive.header("content-type"), Some("application/x-tar"));
    assert_eq!(
        archive.header("content-disposition"),
        Some("attachment; filename=\"site.tar\"")
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("site.tar");
    std::fs::write(&file, &archive.body).unwrap();
    let mut unpack = std::process::Command::new("tar");
    unpack
        .arg("-xvf")
        .arg(&file)
        .arg("-C")
        .arg(directory.path());
    let listed = unpack.output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let read = |path: &str| std::fs::read(directory.path().join(path)).unwrap();
    assert_eq!(read("index.html"), b"<p>x");
    assert_eq!(read(&long), b"long");
    assert_eq!(read("empty"), b"");
    assert_eq!(read("large.bin").len(), 1_500_000);
    let unknown = format!("/archive?revision_id={}", json!("x").as_str().unwrap());
    fixture
        .send(Method::GET, &unknown, None)
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn many_change_one_site_at_once_and_nobody_is_refused() {
    let fixture = SiteFixture::with_files(&[("index.html", "home")]).await;
    let names: Vec<String> = (0..40).map(|n| format!("f{n}.txt")).collect();
    let puts = names
        .iter()
        .map(|name| put(&fixture, name, name.clone().into_bytes()));
    for answer in futures_util::future::join_all(puts).await {
        answer.expect(200);
    }
    let deleted = names.iter().map(|name| {
        let path = format!("/files/{name}");
        let fixture = &fixture;
        async move { fixture.send(Method::DELETE, &path, None).await }
    });
    for answer in futures_util::future::join_all(deleted).await {
        answer.expect(200);
    }
    let whole = (0..20).map(|n| {
        let files =
            json!({ "index.html": { "text": "home" }, (format!("a/{n}.js")): { "text": "1" } });
        let body = json!({ "files": files, "options": { "immutable": ["/a/*"] } });
        let fixture = &fixture;
        async move { fixture.send(Method::PUT, "", Some(&body)).await }
    });
    for answer in futures_util::future::join_all(whole).await {
        answer.expect(200);
    }
}
