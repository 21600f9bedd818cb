//! Forms that work without scripts: a share, its end, and a report.

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, wait_until};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn send_form(server: &TestServer, path: &str, origin: Option<&str>, form: &str) -> Answer {
    let mut request = server.post(path).header(FORM.0, FORM.1);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let request = request.header("accept", "text/html").body(form.to_owned());
    request.answer().await
}

/// Returns the text between two texts.
fn text_between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split(before).nth(1).expect(before);
    rest.split(after).next().unwrap()
}

#[tokio::test]
async fn the_form_publishes_and_takes_back_without_scripts() {
    let server = TestServer::start().await;
    let ours = format!("http://{}", server.address());
    let form = "type=markdown&content=a%0D%0Ab&title=&name=by-hand&password=&expires_in=60";
    for foreign in ["null", "http://localhost:1", "https://example.com"] {
        let answer = send_form(&server, "/_svc/share", Some(foreign), form).await;
        assert_eq!(answer.status, 403, "{foreign}");
    }
    server
        .get("/by-hand")
        .answer()
        .await
        .problem(404, "not_found");
    let answer = send_form(&server, "/_svc/share", Some(&ours), form).await;
    let answer = answer.expect(201);
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    let page = answer.html();
    let base = format!("http://localhost:{}", server.address().port());
    assert!(page.contains(&format!("{base}/by-hand")), "{page}");
    assert!(page.contains("Expires after 1 minute"), "{page}");
    assert!(page.contains("<svg"), "its code");
    let raw = server.get("/by-hand/raw").answer().await.expect(200);
    assert_eq!(raw.text(), "a\nb", "line breaks as they were typed");
    let id = text_between(page, "name=\"id\" value=\"", "\"");
    let token = text_between(page, "name=\"delete_token\" value=\"", "\"");
    let wrong = format!("id={id}&delete_token=svcd_x");
    let refused = send_form(&server, "/_svc/share/delete", Some(&ours), &wrong).await;
    assert_eq!(refused.status, 404);
    let right = format!("id={id}&delete_token={token}");
    let foreign = send_form(&server, "/_svc/share/delete", Some("null"), &right).await;
    assert_eq!(foreign.status, 403);
    server.get("/by-hand").answer().await.expect(200);
    let gone = send_form(&server, "/_svc/share/delete", Some(&ours), &right).await;
    gone.expect(200);
    server
        .get("/by-hand")
        .answer()
        .await
        .problem(404, "not_found");
    for (form, says) in [
        ("type=markdown&content=+&title=", "content"),
        ("type=pdf&content=x", "pdf"),
        ("type=markdown&content=x&surprise=1", "surprise"),
        ("type=markdown&content=x&expires_in=soon", "expires_in"),
    ] {
        let answer = send_form(&server, "/_svc/share", None, form).await;
        assert!(answer.clone().expect(400).html().contains(says), "{form}");
    }
}

#[tokio::test]
async fn a_page_is_reported_by_a_form() {
    let server = TestServer::builder()
        .settings(|s| s.contact = Some("abuse@example.com".to_owned()))
        .service_limits()
        .start()
        .await;
    server
        .publish_slug(&json!({ "content": "x", "name": "page" }))
        .await;
    let form = server.get("/_svc/report/page").answer().await.expect(200);
    for part in [
        "action=\"/api/v1/reports\"",
        "value=\"page\"",
        "mailto:abuse@example.com",
    ] {
        assert!(form.html().contains(part), "{part}");
    }
    server.get("/_svc/report").answer().await.expect(200);
    let odd = server.get("/_svc/report/No!").answer().await;
    odd.problem(404, "not_found");
    let sent = "slug=page&reason=malware&details=&contact=";
    let foreign = send_form(&server, "/api/v1/reports", Some("null"), sent).await;
    assert!(foreign.expect(403).html().contains("origin_refused"));
    let thanks = send_form(&server, "/api/v1/reports", None, sent).await;
    assert!(thanks.expect(202).html().contains("Thank you"));
    let unknown = send_form(&server, "/api/v1/reports", None, "slug=none&reason=other").await;
    assert!(unknown.expect(404).html().contains("There is no such page"));
    let odd = send_form(&server, "/api/v1/reports", None, "slug=page&reason=ugly").await;
    assert!(odd.expect(400).html().contains("invalid_request"));
    for _ in 0..5 {
        send_form(&server, "/api/v1/reports", None, sent).await;
    }
    let late = send_form(&server, "/api/v1/reports", None, sent).await;
    assert!(late.expect(429).html().contains("Too many requests"));
    server.advance(60);
    // What `curl -d` sends says that it is a form, and is JSON.
    let body = json!({ "slug": "page", "reason": "other" }).to_string();
    let answer = send_form(&server, "/api/v1/reports", Some("null"), &body).await;
    assert!(answer.expect(202).json()["id"].is_string());
    let list = server
        .command(&crate::svc(), &["report", "list", "--json"])
        .await;
    let reports = list.json()["reports"].clone();
    let said: Vec<_> = reports
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (&r["reason"], &r["details"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("other"), &Value::Null),
            (&json!("malware"), &Value::Null),
            (&json!("malware"), &Value::Null)
        ]
    );
    let disable = ["deployment", "disable", "page"];
    assert!(server.command(&crate::svc(), &disable).await.success);
    let refused = async || {
        let shown = server.get("/page").answer().await;
        (shown.status == 403).then_some(shown)
    };
    let disabled = wait_until("the page to be disabled", refused).await;
    assert!(disabled.html().contains("mailto:abuse@example.com"));
}
