//! Files that are published as they are.

use super::*;

#[tokio::test]
async fn a_file_is_published_as_its_name_says() {
    let server = TestServer::start().await;
    let base = format!("http://localhost:{}", server.address().port());
    for (file, body, source, kind) in [
        ("a.md", "# Hi", "# Hi", "text/plain"),
        ("a.HTML", "<p>x", "<p>x", "text/plain"),
        ("a.json", "\u{feff}[1]", "[1]", "application/json"),
        ("a.csv", "a,b\n1,2", "a,b\n1,2", "text/csv"),
        ("a.tsv", "a\tb\n1\t2", "a\tb\n1\t2", "text/csv"),
        (
            "a.mmd",
            "flowchart LR\n a-->b",
            "flowchart LR\n a-->b",
            "text/plain",
        ),
        (
            "main.rs",
            "fn main() {}\n",
            "```rust\nfn main() {}\n```\n",
            "text/plain",
        ),
        ("run%20me.sh", "```", "````bash\n```\n````\n", "text/plain"),
        ("notes.txt", "a", "```text\na\n```\n", "text/plain"),
        ("", "a", "```text\na\n```\n", "text/plain"),
    ] {
        let answer = put(&server, file, body).await.expect(201);
        let kind_of_answer = answer.header("content-type");
        assert_eq!(kind_of_answer, Some("text/plain; charset=utf-8"), "{file}");
        let url = answer.text().strip_suffix('\n').expect("a line").to_owned();
        assert_eq!(answer.header("location"), Some(url.as_str()));
        let path = url.strip_prefix(&base).expect("a link to here").to_owned();
        let raw = server
            .get(&format!("{path}/raw"))
            .answer()
            .await
            .expect(200);
        assert_eq!(raw.text(), source, "{file}");
        assert!(
            raw.header("content-type").unwrap().starts_with(kind),
            "{file}"
        );
    }
}

#[tokio::test]
async fn a_file_takes_options_and_answers_json_to_who_names_it() {
    let server = TestServer::start().await;
    let send_request = async |path: &str, accept: &str| {
        let request = server.request(Method::PUT, &format!("{DEPLOY}/{path}"));
        let request = request.header("accept", accept);
        request.body("<b>x</b>".to_owned()).answer().await
    };
    let answer = send_request("my%20notes.md", "application/json")
        .await
        .expect(201);
    let share = answer.json();
    assert_eq!(share["title"], "my notes.md");
    delete(&server, &share).await.expect(204);
    let path = "a.md?name=chosen&title=T&type=html&expires_in=60&one_time=true";
    let share = send_request(path, "text/html, application/json;q=0.9")
        .await
        .json();
    assert_eq!(
        (&share["slug"], &share["title"]),
        (&json!("chosen"), &json!("T"))
    );
    assert_eq!(share["expires_at"], "2026-11-20T12:01:00.000Z");
    let opened = server.post("/chosen").answer().await.expect(200);
    assert_eq!(opened.html(), "<b>x</b>");
    for (query, says) in [
        ("name=No!", "name"),
        ("type=pdf", "type"),
        ("expires_in=5", "expires_in"),
        ("one_time=1", "one_time"),
        ("password=p", "password"),
        ("name=a&name=b", "name"),
    ] {
        let answer = send_request(&format!("a.md?{query}"), "*/*").await;
        let problem = answer.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    for bytes in [&b"\x89PNG\r\n\x1a\n"[..], b"a\0b", b" \n\t", b""] {
        let answer = put(&server, "a.txt", bytes).await;
        answer.problem(400, "invalid_request");
    }
    let broken = put(&server, "a.json", "{").await;
    broken.problem(400, "render_failed");
}

#[tokio::test]
async fn a_file_draws_the_token_of_a_deploy_and_has_its_cap() {
    let server = TestServer::builder()
        .service_limits()
        .limits(|l| l.deploy_burst = 3)
        .start()
        .await;
    let large = put(&server, "a.md", vec![b'a'; (1 << 20) + 1]).await;
    large.problem(413, "payload_too_large");
    server.publish_slug(&json!({ "content": "x" })).await;
    let share = server.deploy(&json!({ "content": "x" })).await;
    let refused = put(&server, "a.md", "x").await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    // Who may not publish any more may still delete.
    for _ in 0..3 {
        delete(&server, &share).await.expect(204);
    }
    delete(&server, &share).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn a_credential_that_is_wrong_is_refused_with_a_file_too() {
    let server = TestServer::start().await;
    let request = server.request(Method::PUT, &format!("{DEPLOY}/a.md"));
    let answer = request.bearer_auth("nonsense").body("x").answer().await;
    answer.problem(401, "unauthorized");
    let request = server.request(Method::PUT, &format!("{DEPLOY}/a.md"));
    request.bearer_auth("").body("x").answer().await.expect(201);
}
