//! Extractors of bodies and credentials.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    #[allow(dead_code, reason = "only parsed")]
    content: String,
    #[allow(dead_code, reason = "only parsed")]
    one_time: Option<bool>,
}

#[test]
fn bad_json_is_named() {
    for (body, code, says) in [
        ("", ProblemCode::InvalidJson, "EOF"),
        ("{", ProblemCode::InvalidJson, "EOF"),
        (
            "{\"content\":\"a\"} x",
            ProblemCode::InvalidJson,
            "trailing",
        ),
        ("[]", ProblemCode::InvalidRequest, "object"),
        ("[\"a\",true]", ProblemCode::InvalidRequest, "object"),
        ("{\"kontent\":1", ProblemCode::InvalidJson, "EOF"),
        ("7", ProblemCode::InvalidRequest, "object"),
        ("{}", ProblemCode::InvalidRequest, "missing field `content`"),
        ("{\"content\":7}", ProblemCode::InvalidRequest, "`content`"),
        (
            "{\"content\":\"a\",\"one_time\":\"yes\"}",
            ProblemCode::InvalidRequest,
            "`one_time`",
        ),
        (
            "{\"content\":\"a\",\"kontent\":1}",
            ProblemCode::InvalidRequest,
            "`kontent`",
        ),
        (
            "{\"content\":\"a\",\"content\":\"b\"}",
            ProblemCode::InvalidRequest,
            "`content`",
        ),
        (
            "{\"content\":\"\\ud800\"}",
            ProblemCode::InvalidJson,
            "escape",
        ),
        ("\u{feff}", ProblemCode::InvalidJson, "EOF"),
    ] {
        let problem = parse_json::<Example>(body.as_bytes()).unwrap_err();
        assert_eq!(problem.code, code, "{body}: {}", problem.detail);
        assert!(problem.detail.contains(says), "{body}: {}", problem.detail);
    }
    assert!(parse_json::<Example>(b"{\"content\":\"a\",\"one_time\":null}").is_ok());
    assert!(parse_json::<Example>("\u{feff}{\"content\":\"a\"}".as_bytes()).is_ok());
    assert_eq!(
        parse_json::<Example>(b"{\"content\":\"\xff\"}")
            .unwrap_err()
            .code,
        ProblemCode::InvalidJson
    );
}

#[test]
fn bearer_tokens() {
    for (value, expected) in [
        ("Bearer abc", PresentedCredential::Token("abc")),
        ("bearer  abc ", PresentedCredential::Token("abc")),
        ("Bearer", PresentedCredential::Missing),
        ("Bearer  ", PresentedCredential::Missing),
        ("", PresentedCredential::Missing),
        ("Basic abc", PresentedCredential::Malformed),
        ("Basic", PresentedCredential::Malformed),
        ("abc", PresentedCredential::Malformed),
    ] {
        let value = HeaderValue::from_static(value);
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
        assert_eq!(PresentedCredential::from_headers(&headers), expected);
    }
    assert_eq!(
        PresentedCredential::from_headers(&HeaderMap::new()),
        PresentedCredential::Missing
    );
}

#[tokio::test]
async fn a_large_document_keeps_no_other_request_waiting() {
    let here = std::thread::current().id();
    for (bytes, is_here) in [(10, true), (LARGE_DOCUMENT_BYTES, false)] {
        let document = Bytes::from(vec![b' '; bytes]);
        let thread = read_document(&document, |_| std::thread::current().id());
        assert_eq!(thread.await.unwrap() == here, is_here);
    }
}
