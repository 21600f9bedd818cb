//! GitHub, which is no OpenID Connect provider; what operators ask for; and rooms in which visitors are named.

use http::Method;
use serde_json::{Value, json};
use svc::config::ProviderKind;
use svc_tests::Socket;
use svc_tests::browser::location;

use super::dishonest_issuer::{DISCOVERY, IssuerChange};
use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::{IssuerBehaviour, StubIssuer};
use crate::owner::text;
use crate::svc;

/// An installation of GitHub's that answers these.
async fn github(user: &Value, emails: &Value) -> (StubIssuer, GuestBook) {
    let stub = StubIssuer::start().await;
    stub.change(|inner| {
        let token = IssuerBehaviour::Text(
            "{\"access_token\":\"gho-sesame\",\"token_type\":\"bearer\"}".into(),
        );
        inner.behaviours.insert("/login/oauth/access_token", token);
        inner
            .behaviours
            .insert("/api/v3/user", IssuerBehaviour::Text(user.to_string()));
        inner.behaviours.insert(
            "/api/v3/user/emails",
            IssuerBehaviour::Text(emails.to_string()),
        );
    });
    let mut hub = provider_settings("hub", &stub);
    hub.kind = ProviderKind::Github;
    let guest_book = GuestBook::with_settings(|settings| settings.providers = vec![hub]).await;
    (stub, guest_book)
}

async fn sign_in(guest_book: &GuestBook) -> (svc_tests::browser::Browser, String) {
    let mut browser = guest_book.browser();
    let asked = guest_book.begin_sign_in(&mut browser, "").await;
    assert_eq!(asked["scope"], "read:user user:email");
    assert_eq!(asked.get("nonce"), None);
    assert_eq!(asked["prompt"], "select_account");
    let query = format!("code=c&state={}", asked["state"]);
    let mut at = guest_book
        .return_from_issuer(&mut browser, "hub", &query)
        .await;
    if at.contains("ticket=") {
        let answer = browser.get(&at).await.expect(302);
        at = location(&at, &answer);
    }
    (browser, at)
}

#[tokio::test]
async fn github_says_who_it_is_by_its_api() {
    let user = json!({"id": 7, "login": "ada", "name": null, "avatar_url": "https://a.example/7.png", "email": "public@example.com"});
    let emails = json!([
        {"email": "old@example.com", "primary": false, "verified": true, "visibility": null},
        {"email": "ada@example.com", "primary": true, "verified": true, "visibility": "private"},
    ]);
    let (stub, guest_book) = github(&user, &emails).await;
    let (mut browser, at) = sign_in(&guest_book).await;
    assert_eq!(at, guest_book.url(""));
    let user = guest_book.user(&mut browser).await;
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(user["name"], "ada");
    assert_eq!(user["picture"], "https://a.example/7.png");
    assert_eq!(user["provider"], "hub");
    let (body, _) = stub.last_request("/login/oauth/access_token");
    assert!(
        body.contains("client_secret=sesame") && body.contains("code_verifier="),
        "{body}"
    );
    let (_, headers) = stub.last_request("/api/v3/user/emails");
    assert_eq!(headers["authorization"], "Bearer gho-sesame");
    assert!(headers.contains_key("user-agent"));

    let unverified = json!([{"email": "ada@example.com", "primary": true, "verified": false}]);
    stub.change(|inner| {
        inner.behaviours.insert(
            "/api/v3/user/emails",
            IssuerBehaviour::Text(unverified.to_string()),
        )
    });
    let (mut browser, _) = sign_in(&guest_book).await;
    assert_eq!(guest_book.user(&mut browser).await.get("email"), None);
    // The provider refuses with a 200.
    let refusal = "{\"error\":\"bad_verification_code\"}".to_owned();
    for (path, manner) in [
        ("/login/oauth/access_token", IssuerBehaviour::Text(refusal)),
        ("/api/v3/user", IssuerBehaviour::Status(401)),
        ("/api/v3/user", IssuerBehaviour::Text("[]".into())),
    ] {
        let before = stub
            .change(|inner| inner.behaviours.insert(path, manner))
            .unwrap();
        let (_, at) = sign_in(&guest_book).await;
        assert_eq!(at, guest_book.failure_url("provider_error"), "{path}");
        stub.change(|inner| inner.behaviours.insert(path, before));
    }
}

#[tokio::test]
async fn operators_list_and_forget_visitors_beside_the_server() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada%1b[31m&email=ada%40example.com", "")
        .await;
    let id = text(&guest_book.user(&mut ada).await["id"]);
    let (server, project) = (
        &guest_book.fixture.server,
        guest_book.fixture.project.as_str(),
    );
    let listed = server
        .command(&svc(), &["visitors", "list", project, "--json"])
        .await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["visitors"][0]["id"], id);
    assert_eq!(listed["visitors"][0]["email"], "ada@example.com");
    let shown = server.command(&svc(), &["visitors", "list", project]).await;
    assert!(
        shown.stdout.contains(&id) && !shown.stdout.contains('\u{1b}'),
        "{shown:?}"
    );
    let checked = server.command(&svc(), &["check"]).await;
    assert!(checked.success, "{checked:?}");
    let forgotten = server
        .command(&svc(), &["visitors", "forget", project, &id])
        .await;
    assert!(forgotten.success, "{forgotten:?}");
    svc_tests::wait_until("the session to end", async || {
        (guest_book.user(&mut ada.clone()).await == Value::Null).then_some(())
    })
    .await;
    for wrong in [
        ["visitors", "forget", project, &id],
        ["visitors", "forget", "nothing", &id],
    ] {
        let output = server.command(&svc(), &wrong).await;
        assert!(
            !output.success && output.stderr.contains("there is no")
                || output.stderr.contains("has no"),
            "{output:?}"
        );
    }
}

/// Runs `svc provider check` for a provider with these settings.
async fn check(settings: &str) -> svc_tests::Output {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("svc.toml");
    let toml = format!(
        "base_url = 'https://svc.example'\ncache = '/tmp/none'\n[[providers]]\nname = 'acme'\nclient_id = 'me'\nclient_secret = 'sesame'\n{settings}\n"
    );
    std::fs::write(&file, toml).unwrap();
    let file = file.to_str().unwrap();
    let arguments = ["provider", "check", "acme", "--config", file];
    let output = svc().run(folder.path(), &arguments).await;
    assert!(
        !output.stdout.contains("sesame") && !output.stderr.contains("sesame"),
        "{output:?}"
    );
    output
}

/// An answer of a token endpoint that refuses.
fn refusal(code: &str) -> IssuerBehaviour {
    IssuerBehaviour::Text(json!({ "error": code }).to_string())
}

#[tokio::test]
async fn operators_are_told_what_is_wrong_with_a_provider() {
    let of = |stub: &StubIssuer| format!("issuer = '{}'", stub.address());
    let stub = StubIssuer::start().await;
    let good = check(&of(&stub)).await;
    assert!(good.success, "{good:?}");
    for said in [
        "https://svc.example/_svc/auth/callback/acme",
        "ok: register",
    ] {
        assert!(good.stdout.contains(said), "{good:?}");
    }
    let (body, headers) = stub.last_request("/token");
    assert!(body.contains("grant_type=authorization_code"), "{body}");
    assert_eq!(headers["authorization"], "Basic bWU6c2VzYW1l");
    let wrong: [(IssuerChange, &str); 19] = [
        (
            |i| i.discovery = json!({"issuer": "https://b.example"}),
            "https://b.example",
        ),
        (
            |i| drop(i.behaviours.insert(DISCOVERY, IssuerBehaviour::Status(404))),
            "check `issuer`",
        ),
        (
            |i| drop(i.behaviours.insert(DISCOVERY, IssuerBehaviour::Status(500))),
            "check `issuer`",
        ),
        (
            |i| {
                drop(
                    i.behaviours
                        .insert(DISCOVERY, IssuerBehaviour::Text("<html>".into())),
                );
            },
            "cannot be read",
        ),
        (
            |i| {
                i.behaviours
                    .insert(DISCOVERY, IssuerBehaviour::Redirect("/other".into()));
            },
            "check `issuer`",
        ),
        (
            |i| drop(i.behaviours.insert(DISCOVERY, IssuerBehaviour::Endless)),
            "check `issuer`",
        ),
        (
            |i| drop(i.behaviours.insert(DISCOVERY, IssuerBehaviour::Silent)),
            "cannot be reached",
        ),
        (
            |i| i.discovery = json!({"authorization_endpoint": null}),
            "no `authorization_endpoint`",
        ),
        (
            |i| i.discovery = json!({"token_endpoint": null}),
            "no `token_endpoint`",
        ),
        (
            |i| i.discovery = json!({"token_endpoint": "http://far.example/token"}),
            "token_endpoint",
        ),
        (|i| i.discovery = json!({"jwks_uri": null}), "jwks_uri"),
        (|i| i.published_keys.clear(), "no key"),
        (
            |i| i.published_keys = vec![json!({"kty": "oct", "k": "c2VjcmV0"})],
            "no key",
        ),
        (
            |i| drop(i.behaviours.insert("/keys", IssuerBehaviour::Status(500))),
            "`jwks_uri`",
        ),
        (
            |i| {
                drop(
                    i.behaviours
                        .insert("/keys", IssuerBehaviour::Text("[]".into())),
                );
            },
            "`jwks_uri`",
        ),
        (
            |i| drop(i.behaviours.insert("/token", refusal("invalid_client"))),
            "`client_secret` of providers.acme",
        ),
        (
            |i| drop(i.behaviours.insert("/token", IssuerBehaviour::Status(401))),
            "`client_id`",
        ),
        (
            |i| drop(i.behaviours.insert("/token", IssuerBehaviour::Status(502))),
            "502",
        ),
        (
            |i| drop(i.behaviours.insert("/token", IssuerBehaviour::Dripping)),
            "token endpoint does not answer",
        ),
    ];
    let checked = wrong.into_iter().map(async |(change, said)| {
        let stub = StubIssuer::start().await;
        stub.change(change);
        let output = check(&of(&stub)).await;
        assert!(
            !output.success && output.stdout.contains(said) && output.stdout.contains("not ok"),
            "{said}: {output:?}"
        );
    });
    futures_util::future::join_all(checked).await;
    let dead = check("issuer = 'http://127.0.0.1:1'").await;
    assert!(
        !dead.success && dead.stdout.contains("cannot be reached"),
        "{dead:?}"
    );
    let far = check("issuer = 'http://far.example'").await;
    assert!(
        !far.success && far.stderr.contains("providers.acme.issuer"),
        "{far:?}"
    );
    let other = check("issuer = 'https://a.example'\n[[providers]]\nname = 'b'").await;
    assert!(
        !other.success && other.stderr.contains("providers.b.issuer"),
        "{other:?}"
    );
}

#[tokio::test]
async fn github_is_asked_whether_it_knows_the_client() {
    let path = "/login/oauth/access_token";
    for (manner, wrong) in [
        (refusal("bad_verification_code"), None),
        (
            refusal("incorrect_client_credentials"),
            Some("`client_id` and `client_secret`"),
        ),
        (
            IssuerBehaviour::Status(404),
            Some("`client_id` and `client_secret`"),
        ),
        (IssuerBehaviour::Status(503), Some("503")),
    ] {
        let stub = StubIssuer::start().await;
        stub.change(|inner| inner.behaviours.insert(path, manner.clone()));
        let settings = format!("kind = 'github'\nissuer = '{}'", stub.address());
        let output = check(&settings).await;
        assert_eq!(output.success, wrong.is_none(), "{manner:?}: {output:?}");
        let said = wrong.unwrap_or("ok: register");
        assert!(output.stdout.contains(said), "{manner:?}: {output:?}");
        assert_eq!(stub.request_count(path), 1);
    }
}

#[tokio::test]
async fn a_room_names_visitors_who_ask_for_it() {
    let guest_book = GuestBook::with_dev_provider().await;
    let on = json!({ "realtime": true });
    guest_book
        .fixture
        .send(Method::PATCH, "", &on)
        .await
        .expect(200);
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada&email=ada%40example.com", "")
        .await;
    let id = text(&guest_book.user(&mut ada).await["id"]);
    let cookie = ada.cookie(&guest_book.url("/ws")).unwrap();
    let host = guest_book
        .origin
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    let join = async |query: &str, origin: &str, cookie: &str| -> Result<Socket, u16> {
        let path = format!("/room/ws?room=lobby{query}");
        let headers = [
            ("host", host.as_str()),
            ("origin", origin),
            ("cookie", cookie),
        ];
        guest_book.fixture.server.socket(&path, &headers).await
    };
    assert_eq!(
        join("&identify=maybe", &guest_book.origin, &cookie)
            .await
            .err(),
        Some(400)
    );
    let mut watcher = join("", &guest_book.origin, "x=y").await.unwrap();
    watcher.wait_for_envelope("svc:welcome").await;
    let mut named = join("&identify=true", &guest_book.origin, &cookie)
        .await
        .unwrap();
    let welcome = named.wait_for_envelope("svc:welcome").await;
    let user = json!({"id": id, "name": "Ada"});
    let list = &welcome["data"]["list"];
    assert_eq!(list[0].get("user"), None, "{list}");
    let own = json!({ "client_id": welcome["data"]["client_id"], "user": user });
    assert_eq!(list[1], own);
    assert_eq!(
        watcher.wait_for_envelope("svc:join").await["data"]["user"],
        user
    );
    named.send_envelope("say", json!(1)).await;
    let said = watcher.wait_for_envelope("say").await;
    assert_eq!(said["user"], user);
    // A visitor who does not ask, or is not signed in, is not named.
    for (query, cookie) in [
        ("", cookie.as_str()),
        ("&identify=false", &cookie),
        ("&identify=true", "x=y"),
    ] {
        let mut other = join(query, &guest_book.origin, cookie).await.unwrap();
        let welcome = other.wait_for_envelope("svc:welcome").await;
        assert_eq!(welcome["data"]["list"][1], own);
        assert_eq!(
            watcher.wait_for_envelope("svc:join").await["data"].get("user"),
            None,
            "{query} {cookie}"
        );
    }
}
