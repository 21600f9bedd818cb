//! Values between JSON and SQL: every type both ways, exactly, and what is no value.

use serde_json::json;
use svc_tests::ReadAnswer;

use crate::owner::text;
use crate::project_fixture::ProjectFixture;

/// A table of any values, an action that puts one in and says what it became, and one that asks for it.
async fn start_with_box() -> ProjectFixture {
    let fixture = ProjectFixture::new("CREATE TABLE box (id INTEGER PRIMARY KEY, v)").await;
    let put = "INSERT INTO box (v) VALUES (:v) RETURNING v, typeof(v) AS kind";
    let last = "SELECT v, typeof(v) AS kind FROM box ORDER BY id DESC LIMIT 1";
    let same = "SELECT :v AS v, typeof(:v) AS kind";
    fixture
        .define(&[("put", put), ("last", last), ("same", same)])
        .await;
    fixture
}

#[tokio::test]
async fn values_come_out_as_they_went_in() {
    let fixture = start_with_box().await;
    for (value, kind) in [
        (json!(null), "null"),
        (json!(0), "integer"),
        (json!(-1), "integer"),
        (json!(9_007_199_254_740_993_i64), "integer"),
        (json!(i64::MAX), "integer"),
        (json!(i64::MIN), "integer"),
        (json!(1.5), "real"),
        (json!(-0.1), "real"),
        (json!(1e300), "real"),
        (json!(5e-324), "real"),
        (json!(""), "text"),
        (json!("Grüße, 世界 🏮"), "text"),
        (json!("a\u{0}b\n\"'\\"), "text"),
        (json!("9007199254740993"), "text"),
        (json!({ "base64": "" }), "blob"),
        (json!({ "base64": "AAEC/w==" }), "blob"),
        (json!({ "base64": "+/+/" }), "blob"),
    ] {
        let row = json!([{ "v": value, "kind": kind }]);
        let params = json!({ "v": value });
        assert_eq!(fixture.call_ok("put", &params).await["rows"], row);
        assert_eq!(fixture.call_ok("last", &json!({})).await["rows"], row);
        assert_eq!(fixture.call_ok("same", &params).await["rows"], row);
        let sql = "SELECT :v AS v, typeof(:v) AS kind";
        let queried = fixture.query(sql, &params).await.expect(200);
        assert_eq!(queried.json()["rows"], row);
    }
    for (value, number) in [(true, 1), (false, 0)] {
        let row = json!([{ "v": number, "kind": "integer" }]);
        assert_eq!(
            fixture.call_ok("put", &json!({ "v": value })).await["rows"],
            row
        );
    }
}

#[tokio::test]
async fn integers_are_exact_on_the_wire() {
    let fixture = start_with_box().await;
    for number in [
        "9223372036854775807",
        "-9223372036854775808",
        "9007199254740993",
    ] {
        let body = format!("{{\"action\":\"put\",\"params\":{{\"v\":{number}}}}}");
        let answer = fixture
            .server
            .post("/room/api/op")
            .body(body)
            .answer()
            .await;
        let answer = answer.expect(200);
        assert!(
            answer.text().contains(&format!(":{number}")),
            "{}",
            answer.text()
        );
    }
    let same = fixture
        .rows("SELECT 9e999 AS x, -9e999 AS y, 0.5 AS z")
        .await;
    assert_eq!(
        same,
        json!([{ "x": null, "y": null, "z": 0.5 }]),
        "not finite"
    );
}

#[tokio::test]
async fn values_that_are_none_are_refused() {
    let fixture = start_with_box().await;
    for value in [
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
        "1e999",
        "-1e400",
        "[]",
        "[1]",
        "{}",
        "{\"base64\":7}",
        "{\"base64\":null}",
        "{\"base64\":\"?\"}",
        "{\"base64\":\"A\"}",
        "{\"base64\":\"AAEC/w==\",\"more\":1}",
        "{\"hex\":\"00\"}",
    ] {
        let body = format!("{{\"action\":\"put\",\"params\":{{\"v\":{value}}}}}");
        let answer = fixture
            .server
            .post("/room/api/op")
            .body(body)
            .answer()
            .await;
        let problem = answer.expect(400).json();
        let code = text(&problem["code"]);
        assert!(
            matches!(&*code, "invalid_request" | "invalid_json"),
            "{value}: {problem}"
        );
    }
    assert_eq!(fixture.count("box").await, 0);
}
