//! The console as a client of the issuer: what browsers are told of it, and what they may call.

use http::Method;
use serde_json::json;
use svc::config::{ConsoleSettings, OauthSettings};
use svc_tests::{AUDIENCE, ReadAnswer, TestServer, TokenIssuer};

use super::ConsoleFixture;

async fn with_issuer(issuer: &TokenIssuer) -> ConsoleFixture {
    let builder = TestServer::builder().settings(|settings| {
        settings.oauth = Some(OauthSettings {
            issuer: issuer.url().to_owned(),
            audience: AUDIENCE.to_owned(),
            scopes: vec!["svc".to_owned()],
        });
        settings.console = Some(ConsoleSettings {
            client_id: "console".to_owned(),
            scopes: None,
        });
    });
    ConsoleFixture::with(builder).await
}

#[tokio::test]
async fn browsers_are_told_where_people_sign_in() {
    let issuer = TokenIssuer::start().await;
    let fixture = with_issuer(&issuer).await;
    let settings = fixture.get("/config.json").await.expect(200).json();
    let url = issuer.url();
    let expected = json!({
        "issuer": url, "client_id": "console", "audience": AUDIENCE, "scopes": ["openid", "svc"],
        "authorization_endpoint": format!("{url}/auth"), "token_endpoint": format!("{url}/token"),
    });
    assert_eq!(settings["oauth"], expected);
    let document = fixture.get("/login").await.expect(200);
    let policy = document.header("content-security-policy").unwrap();
    let calls = format!("connect-src 'self' {url};");
    assert!(policy.contains(&calls), "{policy}");
}

#[tokio::test]
async fn an_issuer_that_is_away_leaves_keys_and_links() {
    let issuer = TokenIssuer::start().await;
    issuer.set_down(true);
    let fixture = with_issuer(&issuer).await;
    let settings = fixture.get("/config.json").await.expect(200).json();
    assert!(settings["oauth"].is_null(), "{settings}");
    issuer.set_down(false);
    let settings = fixture.get("/config.json").await.expect(200).json();
    assert_eq!(settings["oauth"]["client_id"], "console");
}

#[tokio::test]
async fn a_server_whose_console_is_no_client_says_nothing_of_its_issuer() {
    let issuer = TokenIssuer::start().await;
    let builder = TestServer::builder().settings(|settings| {
        settings.oauth = Some(OauthSettings {
            issuer: issuer.url().to_owned(),
            audience: AUDIENCE.to_owned(),
            scopes: Vec::new(),
        });
    });
    let fixture = ConsoleFixture::with(builder).await;
    let settings = fixture.get("/config.json").await.expect(200).json();
    assert!(settings["oauth"].is_null(), "{settings}");
    let document = fixture.get("/login").await.expect(200);
    let policy = document.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src 'self';"), "{policy}");
}

/// The token of a person counts at the console's host as at the API's.
#[tokio::test]
async fn a_token_is_a_person_here_too() {
    let issuer = TokenIssuer::start().await;
    let fixture = with_issuer(&issuer).await;
    let mut claims = issuer.claims("alice");
    claims["scope"] = "openid svc".into();
    let request = fixture.request(Method::GET, "/api/v1/me");
    let request = request.bearer_auth(issuer.sign(&claims));
    let me = request.answer().await;
    assert_eq!(me.expect(200).json()["kind"], "user");
}
