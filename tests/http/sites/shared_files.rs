//! Single files as quick shares: pictures, sound, video and papers, each with a page that shows it.

use http::Method;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::collected_objects;

const DEPLOY: &str = "/api/v1/deploy";

/// Bytes that are no text.
const BYTES: [u8; 7] = [0x89, b'P', b'N', b'G', 0xff, 0, 0xfe];

async fn put(server: &TestServer, below: &str, bytes: Vec<u8>) -> Answer {
    let request = server.request(Method::PUT, &format!("{DEPLOY}/{below}"));
    let request = request.header("accept", "application/json");
    request.body(bytes).answer().await
}

#[tokio::test]
async fn a_file_is_shared_as_it_is() {
    let server = TestServer::start().await;
    let before = collected_objects(&server).await;
    for (file, media_type, tag) in [
        ("photo.png", "image/png", "<img"),
        ("photo.jpg", "image/jpeg", "<img"),
        ("photo.JPEG", "image/jpeg", "<img"),
        ("moving.gif", "image/gif", "<img"),
        ("photo.webp", "image/webp", "<img"),
        ("photo.avif", "image/avif", "<img"),
        ("song.mp3", "audio/mpeg", "<audio"),
        ("film.mp4", "video/mp4", "<video"),
        ("film.webm", "video/webm", "<video"),
        ("paper.pdf", "application/pdf", "<h1"),
    ] {
        let shared = put(&server, file, BYTES.to_vec()).await.expect(201).json();
        assert_eq!(shared["title"], file);
        let slug = shared["slug"].as_str().unwrap();
        let page = server.get(&format!("/{slug}/")).answer().await.expect(200);
        for part in [
            tag,
            &format!("href=\"{file}\""),
            &format!("<title>{file}</title>"),
        ] {
            assert!(page.text().contains(part), "{part}: {}", page.text());
        }
        let shown = server.get(&format!("/{slug}/{file}")).answer().await;
        let shown = shown.expect(200);
        assert_eq!(shown.body[..], BYTES);
        assert_eq!(shown.header("content-type"), Some(media_type));
        for answer in [&page, &shown] {
            let policy = answer.header("content-security-policy").unwrap();
            assert!(policy.starts_with("sandbox"), "{policy}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
        // Browsers show no PDF in a sandbox.
        let saved = (file == "paper.pdf").then_some("attachment");
        assert_eq!(shown.header("content-disposition"), saved, "{file}");
    }
    server.advance(1_000_000);
    server.server().app().expiry.sweep().await.unwrap();
    assert_eq!(collected_objects(&server).await, before);
}

#[tokio::test]
async fn its_options_are_those_of_a_share() {
    let server = TestServer::start().await;
    let query = "photo.png?name=sunset&title=The%20sea&expires_in=60";
    let shared = put(&server, query, BYTES.to_vec()).await.expect(201);
    let link = shared.header("location").unwrap().to_owned();
    let shared = shared.json();
    assert_eq!(
        (&shared["slug"], &shared["title"]),
        (&"sunset".into(), &"The sea".into())
    );
    assert!(link.ends_with("/sunset"), "{link}");
    let page = server.get("/sunset/").answer().await.expect(200);
    assert!(page.text().contains("alt=\"The sea\""), "{}", page.text());
    let plain = server.request(Method::PUT, &format!("{DEPLOY}/photo.png"));
    let plain = plain.body(BYTES.to_vec()).answer().await.expect(201);
    assert_eq!(
        plain.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    for (below, bytes, said) in [
        ("photo.png?one_time=true", BYTES.to_vec(), "one_time"),
        ("photo.png?type=markdown", BYTES.to_vec(), "not text"),
        ("photo.bmp", BYTES.to_vec(), "not text"),
        ("photo.png", Vec::new(), "empty"),
        ("photo.png?name=No!", BYTES.to_vec(), "name"),
        ("photo.png?expires_in=1", BYTES.to_vec(), "expires_in"),
        ("photo.png?password=x", BYTES.to_vec(), "password"),
    ] {
        let problem = put(&server, below, bytes)
            .await
            .problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{below}: {detail}");
    }
    server.advance(61);
    assert_eq!(server.get("/sunset/").answer().await.status, 404);
}

#[tokio::test]
async fn a_name_is_a_text_and_never_more() {
    let server = TestServer::start().await;
    // An address with a slash or a control character in a segment leads nowhere.
    for file in [
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E.png",
        "..%2F..%2Fetc%2Fpasswd.png",
        "a%0Ab.png",
    ] {
        let refused = put(&server, file, BYTES.to_vec()).await;
        refused.problem(404, "not_found");
    }
    for (file, path) in [
        (
            "%3Cscript%3Ealert(1)%3E.png",
            "%3Cscript%3Ealert%281%29%3E.png",
        ),
        (
            "%22onerror%3D%22alert(1).png",
            "%22onerror%3D%22alert%281%29.png",
        ),
        ("javascript:alert(1).png", "javascript%3Aalert%281%29.png"),
        (".hidden.png", "file.png"),
        ("%E2%80%AEgpj.png", "%E2%80%AEgpj.png"),
        ("100%25%20%3F%23.png", "100%25%20%3F%23.png"),
    ] {
        let shared = put(&server, file, BYTES.to_vec()).await.expect(201).json();
        let slug = shared["slug"].as_str().unwrap();
        let page = server.get(&format!("/{slug}/")).answer().await.expect(200);
        let html = page.text();
        assert!(
            !html.contains("<script") && !html.contains("\"onerror"),
            "{html}"
        );
        assert!(html.contains(&format!("src=\"{path}\"")), "{file}: {html}");
        let shown = server.get(&format!("/{slug}/{path}")).answer().await;
        assert_eq!(shown.expect(200).body[..], BYTES, "{file}");
    }
}

#[tokio::test]
async fn a_file_may_be_as_large_as_a_request() {
    let server = TestServer::builder().limits(|limits| limits.body_bytes = 40_000);
    let server = server.start().await;
    let shared = put(&server, "large.mp4", vec![7; 40_000]).await;
    let slug = shared.expect(201).json()["slug"].clone();
    let path = format!("/{}/large.mp4", slug.as_str().unwrap());
    let part = server.get(&path).header("range", "bytes=39990-");
    let part = part.answer().await.expect(206);
    assert_eq!(part.body[..], [7; 10]);
    let refused = put(&server, "large.mp4", vec![7; 40_001]).await;
    refused.problem(413, "payload_too_large");
}
