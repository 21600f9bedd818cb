//! Protected pages: locked until a visitor sends the password, and then unlocked for an hour.

use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

const FORMS: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'";

async fn start_with_page() -> TestServer {
    let server = TestServer::start().await;
    let body = json!({ "content": "<p>inside</p>", "name": "safe", "password": "open sesame" });
    server.publish_slug(&body).await;
    server
}

#[tokio::test]
async fn a_locked_page_is_a_form_and_its_source_a_problem() {
    let server = start_with_page().await;
    for accept in ["text/html", "application/json", "*/*"] {
        for request in [server.get("/safe"), server.head("/safe")] {
            let answer = request.header("accept", accept).answer().await;
            let answer = answer.expect(401);
            let kind = answer.header("content-type");
            assert_eq!(kind, Some("text/html; charset=utf-8"));
            assert!(answer.header("cache-control").unwrap().contains("no-store"));
            assert_eq!(answer.header("content-security-policy"), Some(FORMS));
            assert_ne!(answer.header("referrer-policy"), Some("no-referrer"));
            assert!(!answer.text().contains("inside"));
        }
        let raw = server.get("/safe/raw").header("accept", accept);
        raw.answer().await.problem(401, "unauthorized");
    }
    let form = server.get("/safe").answer().await;
    assert!(form.text().contains("action=\"/api/v1/auth/safe\""));
    assert!(form.text().contains("name=\"password\""));
}

#[tokio::test]
async fn the_password_opens_the_page_for_an_hour() {
    let server = start_with_page().await;
    let body = json!({ "password": "open sesame" });
    let answer = server.json("/api/v1/auth/safe", &body).answer().await;
    let answer = answer.expect(200);
    assert_eq!(answer.json(), json!({ "slug": "safe", "unlocked": true }));
    let cookie = answer.header("set-cookie").unwrap();
    let attributes: Vec<_> = cookie.split(';').map(str::trim).collect();
    for wanted in ["HttpOnly", "SameSite=Lax", "Path=/safe", "Max-Age=3600"] {
        assert!(attributes.contains(&wanted), "{cookie}");
    }
    assert!(
        !attributes.contains(&"Secure"),
        "this server is not on https"
    );
    let cookie = attributes[0].to_owned();
    let open = async |path: &str| server.get(path).header("cookie", &cookie).answer().await;
    let page = open("/safe").await.expect(200);
    assert_eq!(page.text(), "<p>inside</p>");
    assert_eq!(page.header("cache-control"), Some("private, no-store"));
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .starts_with("sandbox")
    );
    let raw = open("/safe/raw").await.expect(200);
    assert_eq!(raw.text(), "<p>inside</p>");
    assert_eq!(raw.header("cache-control"), Some("private, no-store"));
    server.advance(3599);
    open("/safe").await.expect(200);
    server.advance(1);
    open("/safe").await.expect(401);
}

#[tokio::test]
async fn a_form_is_answered_for_a_browser() {
    let server = start_with_page().await;
    let send = |password: &'static str| {
        server
            .post("/api/v1/auth/safe")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("password={password}"))
            .answer()
    };
    let answer = send("open+sesame").await.expect(303);
    assert_eq!(answer.header("location"), Some("/safe"));
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let page = server.get("/safe").header("cookie", cookie).answer().await;
    page.expect(200);
    let wrong = send("open+barley").await.expect(401);
    assert!(wrong.html().contains("name=\"password\""));
    assert_eq!(wrong.header("set-cookie"), None);
}

#[tokio::test]
async fn what_is_not_the_password_opens_nothing() {
    let server = start_with_page().await;
    let open = json!({ "content": "x", "name": "open" });
    server.publish_slug(&open).await;
    for password in ["", "Open sesame", "open sesame ", &"x".repeat(1024)] {
        let body = json!({ "password": password });
        let answer = server.json("/api/v1/auth/safe", &body).answer().await;
        answer.problem(401, "unauthorized");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let body = json!({ "password": "open sesame" });
    for slug in ["open", "nothing", "NOT-A-SLUG"] {
        let path = format!("/api/v1/auth/{slug}");
        // Whether there is anything to unlock comes before what the body says.
        server
            .json(&path, &body)
            .answer()
            .await
            .problem(404, "not_found");
        let answer = server.json(&path, &json!({ "p": 1 })).answer().await;
        answer.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_cookie_opens_its_own_page_alone() {
    let server = start_with_page().await;
    let other = json!({ "content": "x", "name": "other", "password": "open sesame" });
    server.publish_slug(&other).await;
    let cookie = server.unlock("safe", "open sesame").await;
    let try_with = async |slug: &str, cookie: &str| {
        let request = server.get(&format!("/{slug}")).header("cookie", cookie);
        request.answer().await.status
    };
    assert_eq!(try_with("safe", &cookie).await, 200);
    assert_eq!(try_with("safe", &format!("a=b; {cookie}; c=d")).await, 200);
    assert_eq!(try_with("other", &cookie).await, 401);
    assert_eq!(try_with("safe", &cookie[..cookie.len() - 2]).await, 401);
    assert_eq!(try_with("safe", "svc_unlock=").await, 401);
    assert_eq!(try_with("safe", "svc_unlock=\"").await, 401);
}

#[tokio::test]
async fn protected_content_is_for_navigations() {
    let server = start_with_page().await;
    let cookie = server.unlock("safe", "open sesame").await;
    for (mode, dest, status) in [
        (Some("navigate"), Some("document"), 200),
        (Some("navigate"), None, 200),
        (None, None, 200),
        (Some("cors"), Some("empty"), 403),
        (Some("no-cors"), Some("image"), 403),
        (Some("navigate"), Some("iframe"), 403),
        (None, Some("script"), 403),
        (Some("same-origin"), None, 403),
    ] {
        for path in ["/safe", "/safe/raw"] {
            let mut request = server.get(path).header("cookie", &cookie);
            for (name, value) in [("sec-fetch-mode", mode), ("sec-fetch-dest", dest)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let answer = request.answer().await;
            if status == 403 {
                answer.problem(403, "origin_refused");
            }
            answer.expect(status);
        }
    }
}

#[tokio::test]
async fn cookies_are_secure_on_https() {
    let server = TestServer::builder()
        .settings(|s| s.base_url = Some("https://svc.example".parse().unwrap()))
        .start()
        .await;
    let body = json!({ "content": "x", "name": "safe", "password": "p" });
    server.publish_slug(&body).await;
    let answer = server.json("/api/v1/auth/safe", &json!({ "password": "p" }));
    let answer = answer.answer().await.expect(200);
    assert!(answer.header("set-cookie").unwrap().contains("; Secure"));
}

#[tokio::test]
async fn a_password_is_stored_as_a_hash_alone() {
    let server = TestServer::start().await;
    let body = json!({ "content": "x", "name": "safe", "password": "peculiar-password" });
    server.publish_slug(&body).await;
    server.unlock("safe", "peculiar-password").await;
    let data = server.data();
    assert_eq!(
        svc_tests::disk::holding(data, "peculiar-password"),
        [] as [&str; 0]
    );
    assert!(!svc_tests::disk::holding(data, "$argon2id$").is_empty());
}

#[tokio::test]
async fn an_unlocked_page_stays_so_across_a_restart() {
    let server = start_with_page().await;
    let cookie = server.unlock("safe", "open sesame").await;
    let server = server.restart().await;
    let page = server.get("/safe").header("cookie", cookie).answer().await;
    page.expect(200);
}
