//! The description as it is sent: compressed, with validators, and by tag in parts that are descriptions of their own.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;
use svc_tests::{ReadAnswer, TestServer};

use crate::openapi::{description, operations};
use crate::serving::decode_body;

const PATH: &str = "/api/v1/openapi.json";

fn tags(description: &Value) -> Vec<&str> {
    let tags = description["tags"].as_array().unwrap().iter();
    tags.map(|tag| tag["name"].as_str().unwrap()).collect()
}

async fn description_of_tag(server: &TestServer, tag: &str) -> Value {
    let tag = tag.replace(' ', "+");
    let request = server.get(&format!("{PATH}?tag={tag}"));
    request.answer().await.expect(200).json()
}

#[tokio::test]
async fn it_is_prepared_in_every_encoding_and_has_a_validator_for_each() {
    let server = TestServer::start().await;
    for path in [PATH, "/api/v1/openapi.json?tag=projects"] {
        let whole = server.get(path).answer().await.expect(200);
        let mut etags = BTreeSet::new();
        for encoding in [None, Some("br"), Some("zstd"), Some("gzip")] {
            let send_request = |method| {
                let request = server.request(method, path);
                request.header("accept-encoding", encoding.unwrap_or("identity"))
            };
            let answer = send_request(Method::GET).answer().await.expect(200);
            assert_eq!(answer.header("content-encoding"), encoding, "{path}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
            let caching = answer.header("cache-control").unwrap();
            assert!(caching.contains("must-revalidate"), "{caching}");
            assert_eq!(decode_body(encoding, &answer.body), whole.text(), "{path}");
            if encoding.is_some() {
                let (length, most) = (answer.body.len(), whole.body.len() / 5);
                assert!(length < most, "{path}, {encoding:?}: {length} bytes");
            }
            let etag = answer.header("etag").unwrap().to_owned();
            assert!(etag.starts_with('"'), "{etag} is strong");
            let held = send_request(Method::GET).header("if-none-match", &etag);
            assert!(held.answer().await.expect(304).body.is_empty(), "{path}");
            let head = send_request(Method::HEAD).answer().await.expect(200);
            assert_eq!(head.header("etag"), Some(etag.as_str()), "{path}");
            etags.insert(etag);
        }
        assert_eq!(etags.len(), 4, "{path}: {etags:?}");
    }
}

#[tokio::test]
async fn parts_are_descriptions_of_their_own_and_make_up_the_whole() {
    let server = TestServer::start().await;
    let whole = description(&server).await;
    let mut seen = Vec::new();
    for tag in tags(&whole) {
        let part = description_of_tag(&server, tag).await;
        for same in ["openapi", "info", "servers"] {
            assert_eq!(part[same], whole[same], "{tag}");
        }
        assert_eq!(tags(&part), [tag]);
        let text = part.to_string();
        for (path, method, operation) in operations(&part) {
            assert_eq!(
                operation["tags"],
                serde_json::json!([tag]),
                "{method} {path}"
            );
            seen.push(format!("{method} {path}"));
        }
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(part.pointer(pointer).is_some(), "{tag}: {pointer}");
        }
        // Nothing that it does not use, and nothing that it uses otherwise than the whole.
        for (kind, components) in part["components"].as_object().unwrap() {
            for (name, component) in components.as_object().unwrap() {
                let used = match kind.as_str() {
                    "securitySchemes" => format!("{{\"{name}\":["),
                    _ => format!("\"#/components/{kind}/{name}\""),
                };
                assert!(text.contains(&used), "{tag}: {name} is unused");
                assert_eq!(*component, whole["components"][kind][name], "{tag}");
            }
        }
        assert!(text.len() < whole.to_string().len() / 2, "{tag}");
    }
    seen.sort_unstable();
    let all = operations(&whole).into_iter();
    let mut all: Vec<_> = all
        .map(|(path, method, _)| format!("{method} {path}"))
        .collect();
    all.sort_unstable();
    assert_eq!(seen, all);
}

#[tokio::test]
async fn an_unknown_tag_is_told_which_there_are() {
    let server = TestServer::start().await;
    let whole = description(&server).await;
    for tag in ["Projects", "", "project", "quick%20"] {
        let answer = server.get(&format!("{PATH}?tag={tag}")).answer().await;
        let problem = answer.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        for known in tags(&whole) {
            assert!(detail.contains(&format!("`{known}`")), "{detail}");
        }
    }
    let twice = server.get(&format!("{PATH}?tag=projects&tag=tools"));
    twice.answer().await.problem(400, "invalid_request");
    let described = &whole["paths"][PATH]["get"]["parameters"][0]["schema"]["enum"];
    assert_eq!(*described, serde_json::json!(tags(&whole)));
}
