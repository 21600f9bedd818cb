//! Reading pages: headers, encodings, validators, ranges, sources, and what else a slug answers.

mod operation;

use std::collections::HashSet;
use std::io::Read;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use svc_tests::{Answer, ReadAnswer, TestServer, wait_until};

const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

fn page() -> String {
    format!(
        "<!doctype html><title>p</title>{}",
        "<p>again</p>".repeat(300)
    )
}

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    let body = json!({ "content": page(), "name": "page" });
    assert_eq!(server.publish_slug(&body).await, "page");
    server
}

#[track_caller]
fn assert_strangers_headers(answer: &Answer) {
    assert_eq!(answer.header("content-security-policy"), Some(SANDBOX));
    assert_eq!(answer.header("x-robots-tag"), Some("noindex"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn a_page_has_the_headers_of_a_strangers_page() {
    let server = start_with_page().await;
    let answer = server.get("/page").answer().await.expect(200);
    assert_eq!(answer.html(), page());
    assert_strangers_headers(&answer);
    let cache = answer.header("cache-control");
    assert_eq!(cache, Some("public, max-age=0, must-revalidate"));
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(answer.header("x-request-id").is_some());
    assert_eq!(answer.header("cdn-cache-control"), None);
    let etag = answer.header("etag").unwrap();
    assert!(
        etag.starts_with('"') && etag.ends_with('"'),
        "strong: {etag}"
    );
}

#[tokio::test]
async fn each_encoding_decodes_to_the_page_and_has_its_own_etag() {
    let server = start_with_page().await;
    let mut etags = HashSet::new();
    for (accept, encoding) in [
        (None, None),
        (Some("identity"), None),
        (Some("br"), Some("br")),
        (Some("zstd"), Some("zstd")),
        (Some("gzip"), Some("gzip")),
        (Some("gzip, deflate, br, zstd"), Some("br")),
        (Some("gzip;q=1.0, br;q=0.1"), Some("gzip")),
        (Some("br;q=0"), None),
        (Some("br;q=0.5, identity"), None),
        (Some("br;q=0.5, identity;q=0.1"), Some("br")),
        (Some("deflate"), None),
    ] {
        let mut request = server.get("/page");
        if let Some(accept) = accept {
            request = request.header("accept-encoding", accept);
        }
        let answer = request.answer().await.expect(200);
        assert_eq!(answer.header("content-encoding"), encoding, "{accept:?}");
        assert_eq!(decode_body(encoding, &answer.body), page(), "{accept:?}");
        if encoding.is_some() {
            assert!(answer.body.len() < page().len() / 4, "{accept:?}");
        }
        etags.insert(answer.header("etag").unwrap().to_owned());
    }
    assert_eq!(etags.len(), 4, "{etags:?}");
}

pub(crate) fn decode_body(encoding: Option<&str>, body: &Bytes) -> String {
    let mut text = String::new();
    let mut reader: Box<dyn Read> = match encoding {
        None => Box::new(&**body),
        Some("br") => Box::new(brotli::Decompressor::new(&**body, 4096)),
        Some("gzip") => Box::new(flate2::read::GzDecoder::new(&**body)),
        Some("zstd") => Box::new(zstd::Decoder::new(&**body).unwrap()),
        Some(other) => panic!("nobody asked for {other}"),
    };
    reader.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn who_has_the_page_is_told_so() {
    let server = start_with_page().await;
    let fresh = |encoding: &'static str| {
        let request = server.get("/page").header("accept-encoding", encoding);
        request.answer()
    };
    let (plain, brotli) = (fresh("identity").await, fresh("br").await);
    let (plain, brotli) = (
        plain.header("etag").unwrap(),
        brotli.header("etag").unwrap(),
    );
    for (encoding, held, status) in [
        ("identity", plain.to_owned(), 304),
        ("identity", format!("W/{plain}"), 304),
        ("identity", format!("\"other\", {plain}"), 304),
        ("identity", "*".to_owned(), 304),
        ("br", brotli.to_owned(), 304),
        ("br", plain.to_owned(), 200),
        ("identity", "\"other\"".to_owned(), 200),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = server
                .request(method, "/page")
                .header("accept-encoding", encoding)
                .header("if-none-match", &held)
                .answer()
                .await;
            assert_eq!(answer.status, status, "{encoding} {held}");
            assert!(answer.header("etag").is_some());
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
            let cache = answer.header("cache-control");
            assert_eq!(cache, Some("public, max-age=0, must-revalidate"));
            if status == 304 {
                assert!(answer.body.is_empty());
                assert_eq!(answer.header("content-type"), None);
            }
        }
    }
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let server = start_with_page().await;
    for path in ["/page", "/page/raw", "/nothing", "/page/", "/", "/healthz"] {
        let get = server.get(path).answer().await;
        let head = server.head(path).answer().await;
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty(), "{path}");
        for name in [
            "content-type",
            "etag",
            "cache-control",
            "location",
            "content-length",
        ] {
            assert_eq!(head.header(name), get.header(name), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn ranges_are_parts_of_the_page() {
    let server = start_with_page().await;
    let (whole, length) = (page(), page().len());
    let total = format!("/{length}");
    for (range, status, part, content_range) in [
        ("bytes=0-9", 206, &whole[..10], format!("bytes 0-9{total}")),
        (
            "bytes=10-",
            206,
            &whole[10..],
            format!("bytes 10-{}{total}", length - 1),
        ),
        (
            "bytes=-5",
            206,
            &whole[length - 5..],
            format!("bytes {}-{}{total}", length - 5, length - 1),
        ),
        (
            "bytes=-99999999",
            206,
            &whole[..],
            format!("bytes 0-{}{total}", length - 1),
        ),
        (
            "bytes=0-99999999",
            206,
            &whole[..],
            format!("bytes 0-{}{total}", length - 1),
        ),
        ("bytes=0-1,4-5", 200, &whole[..], String::new()),
        ("lines=1-2", 200, &whole[..], String::new()),
        ("bytes=nonsense", 200, &whole[..], String::new()),
    ] {
        for path in ["/page", "/page/raw"] {
            let answer = server.get(path).header("range", range).answer().await;
            let answer = answer.expect(status);
            assert_eq!(answer.text(), part, "{path} {range}");
            let expected = (!content_range.is_empty()).then_some(content_range.as_str());
            assert_eq!(answer.header("content-range"), expected, "{path} {range}");
        }
    }
    for beyond in [format!("bytes={length}-"), "bytes=-0".to_owned()] {
        let answer = server.get("/page").header("range", &beyond).answer().await;
        answer.problem(416, "range_not_satisfiable");
        let star = format!("bytes */{length}");
        assert_eq!(answer.header("content-range"), Some(star.as_str()));
    }
    // Only GET knows ranges (RFC 9110, section 14.2).
    let head = server
        .head("/page")
        .header("range", "bytes=0-9")
        .answer()
        .await;
    head.expect(200);
}

#[tokio::test]
async fn a_range_of_another_version_is_the_whole() {
    let server = start_with_page().await;
    let etag = server.get("/page").answer().await;
    let etag = etag.header("etag").unwrap().to_owned();
    for (held, status) in [(etag.as_str(), 206), ("\"old\"", 200), ("W/\"old\"", 200)] {
        let answer = server
            .get("/page")
            .header("range", "bytes=0-9")
            .header("if-range", held)
            .answer()
            .await;
        assert_eq!(answer.status, status, "{held}");
    }
}

#[tokio::test]
async fn a_slash_at_the_end_is_redirected_away() {
    let server = start_with_page().await;
    let answer = server.get("/page/").answer().await.expect(308);
    assert_eq!(answer.header("location"), Some("/page"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let answer = server.get("/page/?a=b&c").answer().await.expect(308);
    assert_eq!(answer.header("location"), Some("/page?a=b&c"));
    server
        .get("/nothing/")
        .answer()
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn the_source_is_served_exactly_and_never_as_html() {
    let server = TestServer::start().await;
    let strange = "\u{feff}a,b\r\n\"x\ny\",<b>\r\n";
    for (kind, content, content_type) in [
        ("html", "<script>alert(1)</script>", "text/plain"),
        ("markdown", "# Ünïcode\r\n<b>", "text/plain"),
        ("mermaid", "flowchart LR\n a --> b", "text/plain"),
        ("json", " { \"a\" : 1.50, \"a\": 2 }\n", "application/json"),
        ("csv", strange, "text/csv"),
    ] {
        let slug = server
            .publish_slug(&json!({ "content": content, "type": kind }))
            .await;
        let path = format!("/{slug}/raw");
        let answer = server
            .get(&path)
            .header("accept", "text/html")
            .answer()
            .await;
        let answer = answer.expect(200);
        assert_eq!(answer.text(), content, "{kind}");
        let found = answer.header("content-type").unwrap();
        assert_eq!(found.split(';').next(), Some(content_type), "{kind}");
        assert_strangers_headers(&answer);
        let etag = answer.header("etag").unwrap();
        let again = server
            .get(&path)
            .header("if-none-match", etag)
            .answer()
            .await;
        again.expect(304);
    }
}

#[tokio::test]
async fn a_page_as_heavy_as_is_allowed_stays_in_memory() {
    let server = TestServer::builder()
        .limits(|limits| {
            limits.page_bytes = 1 << 20;
            limits.page_cache_bytes = 4 << 20;
        })
        .start()
        .await;
    let heavy = json!({ "content": "x".repeat(1_040_000), "name": "heavy" });
    server.publish_slug(&heavy).await;
    let pages = server.server().app().serving.pages();
    for _ in 0..3 {
        server.get("/heavy").answer().await.expect(200);
    }
    assert_eq!((pages.misses.get(), pages.hits.get()), (1, 2));
}

#[tokio::test]
async fn large_pages_that_readers_hold_take_bounded_memory() {
    let server = TestServer::builder()
        .limits(|limits| {
            // None fits.
            limits.page_cache_bytes = 1_000;
            limits.page_work_bytes = 500_000;
        })
        .start()
        .await;
    for (name, letter, bytes) in [
        ("one", "1", 300_000),
        ("two", "2", 300_000),
        ("small", "3", 100),
    ] {
        let page = json!({ "content": letter.repeat(bytes), "name": name });
        server.publish_slug(&page).await;
    }
    let serving = &server.server().app().serving;
    let held = serving.page("one").await.unwrap();
    let refused = server.get("/two").answer().await;
    refused.problem(503, "capacity_reached");
    assert!(refused.header("retry-after").is_some());
    // What is in memory anyway, and what is small, is answered.
    for path in ["/one", "/small"] {
        server.get(path).answer().await.expect(200);
    }
    drop(held);
    let free = async || (server.get("/two").answer().await.status == 200).then_some(());
    wait_until("the page to be forgotten", free).await;
}

#[tokio::test]
async fn compressed_sources_that_readers_hold_take_bounded_memory() {
    let server = TestServer::builder()
        .limits(|limits| {
            limits.page_cache_bytes = 1_000;
            limits.page_work_bytes = 24_000;
        })
        .start()
        .await;
    // Compressed, it takes about half of its bytes.
    let digits: String = (0..10_000_u64)
        .map(|number| (number * number * 2_654_435_761).to_string())
        .collect();
    let page = json!({ "content": &digits[..20_000], "type": "html", "name": "page" });
    server.publish_slug(&page).await;
    // Its reader takes a byte of each answer, and no more.
    let reader = svc_tests::http_client()
        .http2_prior_knowledge()
        .http2_initial_stream_window_size(1)
        .no_proxy()
        .build()
        .unwrap();
    let mut unread = Vec::new();
    for encoding in [Some("gzip"), None] {
        let request = reader.get(server.url("/page/raw"));
        let answer = request.header("accept-encoding", "gzip").send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        let sent = answer.headers().get("content-encoding");
        assert_eq!(sent.map(|sent| sent.to_str().unwrap()), encoding);
        unread.push(answer);
    }
    drop(unread);
    let free = async || {
        let request = server.get("/page/raw").header("accept-encoding", "gzip");
        let encoding = request.answer().await.header("content-encoding").is_some();
        encoding.then_some(())
    };
    wait_until("the unread sources to be forgotten", free).await;
}

/// Over HTTP/2 nobody but us keeps a body from being sent.
#[tokio::test]
async fn head_has_no_body_over_http_2_either() {
    let server = start_with_page().await;
    let client = svc_tests::http_client()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    for path in [
        "/page",
        "/page/raw",
        "/nothing",
        "/nothing/raw",
        "/api/v1/x",
    ] {
        let get = client.get(server.url(path)).answer().await;
        let head = client.head(server.url(path)).answer().await;
        assert_eq!((head.status, &*head.body), (get.status, &b""[..]), "{path}");
        let length = get.body.len().to_string();
        assert_eq!(head.header("content-length"), Some(&*length), "{path}");
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
    }
}
