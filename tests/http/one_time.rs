//! Pages that can be read once: looking burns nothing, and of all who open one reader gets it.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer, disk};

const SECRET: &str = "the-words-that-must-burn";

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    let body = json!({
        "content": format!("<p>{SECRET}</p>"), "name": "once", "title": "burning-title", "one_time": true
    });
    server.publish_slug(&body).await;
    server
}

#[tokio::test]
async fn looking_never_burns() {
    let server = start_with_page().await;
    for _ in 0..3 {
        for accept in ["text/html", "*/*", "application/json"] {
            for method in [Method::GET, Method::HEAD] {
                let request = server.request(method, "/once").header("accept", accept);
                let answer = request.answer().await.expect(200);
                let kind = answer.header("content-type");
                assert_eq!(kind, Some("text/html; charset=utf-8"));
                assert_eq!(answer.header("cache-control"), Some("private, no-store"));
                let policy = answer.header("content-security-policy").unwrap();
                assert!(!policy.contains("sandbox"), "its form must work");
                for part in [
                    "default-src 'none'",
                    "form-action 'self'",
                    "frame-ancestors 'none'",
                ] {
                    assert!(policy.contains(part), "{policy}");
                }
                assert_ne!(answer.header("referrer-policy"), Some("no-referrer"));
                assert!(!answer.text().contains(SECRET));
            }
        }
    }
    let form = server.get("/once").answer().await;
    assert!(form.text().contains("method=\"post\" action=\"/once\""));
    assert!(!form.text().contains("burning-title"));
    server.get("/once/").answer().await.expect(308);
    server
        .get("/once/raw")
        .answer()
        .await
        .problem(404, "not_found");
    server.post("/once").answer().await.expect(200);
}

#[tokio::test]
async fn a_large_page_without_room_to_send_it_is_not_burnt() {
    let server = TestServer::builder()
        .limits(|limits| {
            // No page fits.
            limits.page_cache_bytes = 1_000;
            limits.page_work_bytes = 500_000;
        })
        .start()
        .await;
    for (name, bytes, one_time) in [
        ("held", 300_000, false),
        ("once", 300_000, true),
        ("small", 100, true),
    ] {
        let page = json!({ "content": "x".repeat(bytes), "name": name, "one_time": one_time });
        server.publish_slug(&page).await;
    }
    let held = server.server().app().serving.page("held").await.unwrap();
    let refused = server.post("/once").answer().await;
    refused.problem(503, "capacity_reached");
    server.post("/small").answer().await.expect(200);
    drop(held);
    let opened = server.post("/once").answer().await.expect(200);
    assert_eq!(opened.html().len(), 300_000);
}

#[tokio::test]
async fn opening_answers_the_page_and_is_the_end_of_it() {
    let server = start_with_page().await;
    let opened = server.post("/once").answer().await.expect(200);
    assert_eq!(opened.html(), format!("<p>{SECRET}</p>"));
    assert_eq!(opened.header("cache-control"), Some("private, no-store"));
    let policy = opened.header("content-security-policy").unwrap();
    assert!(policy.starts_with("sandbox "), "{policy}");
    assert_eq!(opened.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(opened.header("x-robots-tag"), Some("noindex"));
    for request in [
        server.get("/once"),
        server.post("/once"),
        server.get("/once/raw"),
    ] {
        request.answer().await.problem(404, "not_found");
    }
    for words in [SECRET, "burning-title"] {
        assert_eq!(
            disk::holding(server.data(), words),
            [] as [&str; 0],
            "{words}"
        );
    }
    let slug = server
        .publish_slug(&json!({ "content": "x", "name": "once" }))
        .await;
    assert_eq!(slug, "once", "the slug is free again");
}

#[tokio::test]
async fn what_is_to_burn_is_in_one_private_file() {
    let server = start_with_page().await;
    let held = disk::holding(server.data(), SECRET);
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0].starts_with("once/"), "{held:?}");
    // Neither is its title anywhere else.
    for path in disk::holding(server.data(), "burning-title") {
        assert_eq!(path, held[0]);
    }
    // Two of the same content are two files.
    let body = json!({ "content": format!("<p>{SECRET}</p>"), "one_time": true });
    server.publish_slug(&body).await;
    assert_eq!(disk::holding(server.data(), SECRET).len(), 2);
}

#[tokio::test]
async fn one_of_many_readers_gets_it() {
    let server = start_with_page().await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..20 {
        readers.spawn(server.post("/once").answer());
    }
    let answers = readers.join_all().await;
    let (got, late): (Vec<_>, Vec<_>) = answers.into_iter().partition(|a| a.status == 200);
    assert_eq!(got.len(), 1);
    assert!(got[0].text().contains(SECRET));
    for answer in late {
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn foreign_pages_cannot_open_it() {
    let server = start_with_page().await;
    let ours = format!("http://{}", server.address());
    for origin in [
        "null",
        "https://evil.example",
        "http://localhost:1",
        &format!("{ours}0"),
        "",
    ] {
        let answer = server.post("/once").header("origin", origin).answer().await;
        answer.problem(403, "origin_refused");
    }
    for (mode, dest) in [
        ("cors", "empty"),
        ("no-cors", "empty"),
        ("navigate", "iframe"),
    ] {
        let answer = server
            .post("/once")
            .header("origin", &ours)
            .header("sec-fetch-mode", mode)
            .header("sec-fetch-dest", dest)
            .answer()
            .await;
        answer.problem(403, "origin_refused");
    }
    let answer = server
        .post("/once")
        .header("origin", &ours)
        .header("sec-fetch-mode", "navigate")
        .header("sec-fetch-dest", "document")
        .answer()
        .await;
    answer.expect(200);
}

#[tokio::test]
async fn a_request_that_is_refused_burns_nothing() {
    let server = start_with_page().await;
    let most = 4 << 10;
    let large = server.post("/once").body(vec![b'x'; most + 1]);
    large.answer().await.problem(413, "payload_too_large");
    let head = format!(
        "POST /once HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n",
        server.address(),
        most + 1
    );
    let chunked = [head.as_bytes(), &vec![b'x'; most + 1], b"\r\n0\r\n\r\n"].concat();
    let large = server.raw(chunked).await;
    large.problem(413, "payload_too_large");
    let ours = format!("http://{}", server.address());
    let twice = server.post("/once").header("origin", &ours);
    let twice = twice.header("origin", "https://evil.example");
    twice.answer().await.problem(400, "invalid_request");
    let fits = server.post("/once").body(vec![b'x'; most]);
    assert!(fits.answer().await.expect(200).text().contains(SECRET));
}

#[tokio::test]
async fn a_password_comes_first() {
    let server = TestServer::start().await;
    let body = json!({ "content": SECRET, "name": "both", "one_time": true, "password": "p" });
    server.publish_slug(&body).await;
    for request in [server.get("/both"), server.post("/both")] {
        let answer = request.answer().await.expect(401);
        assert!(answer.html().contains("name=\"password\""));
    }
    server
        .get("/both/raw")
        .answer()
        .await
        .problem(404, "not_found");
    let cookie = server.unlock("both", "p").await;
    let form = server.get("/both").header("cookie", &cookie).answer().await;
    assert!(form.expect(200).html().contains("action=\"/both\""));
    let opened = server
        .post("/both")
        .header("cookie", &cookie)
        .answer()
        .await;
    assert_eq!(opened.expect(200).text(), SECRET);
    let again = server.json("/api/v1/auth/both", &json!({ "password": "p" }));
    again.answer().await.problem(404, "not_found");
}

#[tokio::test]
async fn it_survives_a_restart_and_then_burns() {
    let server = start_with_page().await.restart().await;
    let opened = server.post("/once").answer().await.expect(200);
    assert!(opened.text().contains(SECRET));
    let server = server.restart().await;
    server.get("/once").answer().await.problem(404, "not_found");
    assert_eq!(disk::holding(server.data(), SECRET), [] as [&str; 0]);
}

#[tokio::test]
async fn a_reader_without_the_password_is_answered_before_the_body() {
    let server = TestServer::start().await;
    let page =
        json!({ "content": SECRET, "name": "locked", "one_time": true, "password": "open sesame" });
    server.publish_slug(&page).await;
    // Not one byte of the body is ever sent.
    let request = format!(
        "POST /locked HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 10\r\n\r\n",
        server.address()
    );
    server.raw(request).await.expect(401);
}

#[tokio::test]
async fn a_reader_who_hangs_up_leaves_nothing_behind() {
    let server = TestServer::start().await;
    for round in 0..20_u64 {
        let body = json!({ "content": SECRET, "name": format!("gone-{round}"), "one_time": true });
        let slug = server.publish_slug(&body).await;
        let request = format!(
            "POST /{slug} HTTP/1.1\r\nHost: {}\r\n\r\n",
            server.address()
        );
        let address = server.address();
        let hang_up = move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
            // Sooner and later: before it is heard, and while its page burns.
            std::thread::sleep(std::time::Duration::from_micros(250 * round));
        };
        tokio::task::spawn_blocking(hang_up).await.unwrap();
    }
    // Which readers were heard before they hung up is chance; that a row and its file go together is not.
    let left = || {
        let rows = server.rows().into_iter();
        let rows = rows.filter(|(table, _)| table == "deployments");
        let files = disk::names(&server.data().join("once")).len();
        (
            rows.map(|(_, count)| count).sum(),
            i64::try_from(files).unwrap(),
        )
    };
    let settled = async || {
        let (rows, files): (i64, i64) = left();
        (rows < 20 && rows == files).then_some(())
    };
    svc_tests::wait_until("some to be heard, and files and rows to agree", settled).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let (rows, files): (i64, i64) = left();
    assert_eq!(rows, files, "for good");
}

#[tokio::test]
async fn an_expired_one_burns_unread() {
    let server = start_with_page().await;
    server.advance(604_800);
    server
        .post("/once")
        .answer()
        .await
        .problem(404, "not_found");
    let burnt = async || {
        disk::holding(server.data(), SECRET)
            .is_empty()
            .then_some(())
    };
    svc_tests::wait_until("the sweep", burnt).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_keeps_no_other() {
    let server = TestServer::start().await;
    let body = |name| json!({ "content": SECRET, "name": name, "one_time": true });
    let first = server.deploy(&body("first")).await;
    server.advance(1);
    server.publish_slug(&body("second")).await;
    let stuck = server
        .data()
        .join("once")
        .join(first["id"].as_str().unwrap());
    std::fs::remove_file(&stuck).unwrap();
    std::fs::create_dir(&stuck).unwrap();
    server.advance(604_800);
    let burnt = async || {
        disk::holding(server.data(), SECRET)
            .is_empty()
            .then_some(())
    };
    svc_tests::wait_until("the other to burn", burnt).await;
    std::fs::remove_dir(&stuck).unwrap();
}
