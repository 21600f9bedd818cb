//! States, tickets and sessions, walked with the wrong browser, page, host and time, twice, and across a restart.

use http::{HeaderMap, HeaderName, Method};
use serde_json::{Value, json};
use svc_tests::TestServer;
use svc_tests::browser::location;

use super::guest_book::{GuestBook, pin_address, provider_settings};
use super::stub_issuer::StubIssuer;

#[tokio::test]
async fn an_issuer_that_can_is_told_to_ask_which_account_to_use() {
    for (prompts, expected) in [
        (json!(null), None),
        (json!(["none", "login", "consent"]), None),
        (json!(["login", "select_account"]), Some("select_account")),
    ] {
        let stub = StubIssuer::start().await;
        stub.change(|inner| inner.discovery = json!({ "prompt_values_supported": prompts }));
        let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
        let mut browser = guest_book.browser();
        let asked = guest_book.begin_sign_in(&mut browser, "").await;
        let prompt = asked.get("prompt").map(String::as_str);
        assert_eq!(prompt, expected, "{prompts}");
    }
}

#[tokio::test]
async fn an_operator_says_what_an_issuer_asks_visitors_for() {
    let stub = StubIssuer::start().await;
    stub.change(|inner| {
        inner.discovery = json!({ "prompt_values_supported": ["login", "select_account"] });
    });
    let mut acme = provider_settings("acme", &stub);
    acme.prompt = Some("login consent".to_owned());
    let guest_book = GuestBook::with_settings(|settings| settings.providers = vec![acme]).await;
    let mut browser = guest_book.browser();
    let asked = guest_book.begin_sign_in(&mut browser, "").await;
    assert_eq!(asked["prompt"], "login consent");
}

#[tokio::test]
async fn a_state_is_good_once_in_time_and_for_its_provider() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub), ("other", &stub)]).await;
    let mut browser = guest_book.browser();
    let asked = guest_book
        .begin_sign_in(&mut browser, "?provider=acme")
        .await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = guest_book
        .return_from_issuer(&mut browser, "acme", &query)
        .await;
    // The callback once more, as the back button does: the first time counts.
    let again = guest_book
        .return_from_issuer(&mut browser, "acme", &query)
        .await;
    assert_eq!(again, guest_book.failure_url("state_invalid"));
    assert_eq!(stub.request_count("/token"), 1);
    let answer = browser.get(&complete).await;
    assert_eq!(location(&complete, &answer), guest_book.url(""));
    // Too late.
    let asked = guest_book
        .begin_sign_in(&mut browser, "?provider=acme")
        .await;
    guest_book.fixture.server.advance(601);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let late = guest_book
        .return_from_issuer(&mut browser, "acme", &query)
        .await;
    assert_eq!(late, guest_book.failure_url("state_invalid"));
    // An unknown state leads nowhere.
    for state in [
        "",
        "state=",
        "state=abc",
        &format!("state={}A", asked["state"]),
        "state=a&state=b",
    ] {
        let url = format!(
            "{}/_svc/auth/callback/acme?code=x&{state}",
            guest_book.sites
        );
        let answer = browser.get(&url).await;
        answer.problem(400, "invalid_request");
    }
    // Nor does an address of a provider that there is not.
    let asked = guest_book
        .begin_sign_in(&mut browser, "?provider=acme")
        .await;
    let query = format!("code=x&state={}", asked["state"]);
    let found = guest_book
        .return_from_issuer(&mut browser, "nobody", &query)
        .await;
    assert_eq!(found, guest_book.failure_url("state_invalid"));
}

#[tokio::test]
async fn a_ticket_is_good_once_for_a_minute_and_for_its_browser_and_page() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    guest_book.fixture.publish("sibling").await;
    let (mut ada, mut eve) = (guest_book.browser(), guest_book.browser());
    let refused = guest_book.failure_url("ticket_invalid");

    let ticket = guest_book.completion_url(&mut ada, "acme").await;
    let head = ada.send_request(Method::HEAD, &ticket, HeaderMap::new(), None);
    let head = head.await.expect(405);
    assert_eq!(head.header("allow"), Some("GET"));
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), guest_book.url(""));
    let user = guest_book.user(&mut ada).await;
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    assert_eq!(guest_book.user(&mut ada).await, user, "the session stays");

    // Another browser with a pending sign-in: sending it to the end of a foreign sign-in signs nobody in.
    guest_book.begin_sign_in(&mut eve, "").await;
    let ticket = guest_book.completion_url(&mut ada, "acme").await;
    let answer = eve.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    assert_eq!(guest_book.user(&mut eve).await, Value::Null);
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused, "it is used up");

    let ticket = guest_book.completion_url(&mut ada, "acme").await;
    guest_book.fixture.server.advance(61);
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);

    let ticket = guest_book.completion_url(&mut ada, "acme").await;
    let sibling = ticket.replace("/room/", "/sibling/");
    let answer = ada.get(&sibling).await.expect(302);
    let expected = format!("{}/sibling?auth_error=ticket_invalid", guest_book.origin);
    assert_eq!(location(&sibling, &answer), expected);

    for query in ["", "?ticket=", "?ticket=abc"] {
        let url = guest_book.url(&format!("/auth/complete{query}"));
        let answer = ada.get(&url).await.expect(302);
        assert_eq!(location(&url, &answer), refused);
    }
}

#[tokio::test]
async fn two_tabs_sign_in_beside_each_other() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    let first = guest_book
        .begin_sign_in(&mut browser, "?return_to=/room?tab=1")
        .await;
    let second = guest_book
        .begin_sign_in(&mut browser, "?return_to=/room?tab=2")
        .await;
    for (asked, tab) in [(second, 2), (first, 1)] {
        let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
        let complete = guest_book
            .return_from_issuer(&mut browser, "acme", &query)
            .await;
        let answer = browser.get(&complete).await.expect(302);
        assert_eq!(
            location(&complete, &answer),
            guest_book.url(&format!("?tab={tab}"))
        );
    }
    // The later session is the only one: the one before has ended.
    let count = "SELECT count(*) FROM visitor_sessions";
    let control = &guest_book.fixture.server.server().app().control;
    let sessions: i64 = control
        .read_blocking(|c| c.query_row(count, [], |row| row.get(0)))
        .unwrap();
    assert_eq!(sessions, 1);
}

#[tokio::test]
async fn where_projects_have_no_origins_the_callback_knows_the_browser() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_settings(|settings| {
        settings.base_url = Some("https://svc.test".parse().unwrap());
        settings.providers = vec![provider_settings("acme", &stub)];
    })
    .await;
    assert_eq!(guest_book.origin, "https://svc.test");
    let (mut ada, mut eve) = (guest_book.browser(), guest_book.browser());
    let asked = guest_book.begin_sign_in(&mut ada, "").await;
    guest_book.begin_sign_in(&mut eve, "").await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let stolen = guest_book
        .return_from_issuer(&mut eve, "acme", &query)
        .await;
    assert_eq!(stolen, guest_book.failure_url("state_invalid"));
    assert_eq!(stub.request_count("/token"), 0);
    // The ticket was not used up by that.
    let complete = guest_book
        .return_from_issuer(&mut ada, "acme", &query)
        .await;
    ada.get(&complete).await.expect(302);
    assert_eq!(guest_book.user(&mut ada).await["name"], "Ada");
    for cookie in &ada.cookies {
        assert!(cookie.line.contains("; Secure"), "{}", cookie.line);
        assert_eq!(
            cookie.name.starts_with("__Host-"),
            cookie.path == "/",
            "{}",
            cookie.line
        );
    }
}

#[tokio::test]
async fn a_sign_in_and_a_session_outlive_a_restart() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_settings(|settings| pin_address(settings, &stub)).await;
    let (mut ada, mut bob) = (guest_book.browser(), guest_book.browser());
    guest_book.sign_in_with_issuer(&mut ada, "acme").await;
    let user = guest_book.user(&mut ada).await;
    let asked = guest_book.begin_sign_in(&mut bob, "").await;
    let ticket = guest_book
        .completion_url(&mut guest_book.browser(), "acme")
        .await;

    let guest_book = guest_book.move_to_server(TestServer::restart).await;
    let (mut ada, mut bob) = (guest_book.browser_of(&ada), guest_book.browser_of(&bob));
    assert_eq!(guest_book.user(&mut ada).await, user);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = guest_book
        .return_from_issuer(&mut bob, "acme", &query)
        .await;
    bob.get(&complete).await.expect(302);
    assert_eq!(guest_book.user(&mut bob).await["id"], user["id"]);
    // A ticket does not, and says so.
    let answer = bob.get(&ticket).await.expect(302);
    assert_eq!(
        location(&ticket, &answer),
        guest_book.failure_url("ticket_invalid")
    );
}

#[tokio::test]
async fn a_session_ends_after_thirty_days_whatever_its_visitor_does() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    let mine = json!({"action": "mine"});
    for _ in 0..29 {
        guest_book.fixture.server.advance(24 * 3600);
        guest_book.call(&mut ada, &mine).await.expect(200);
    }
    guest_book.fixture.server.advance(24 * 3600 - 1);
    guest_book.call(&mut ada, &mine).await.expect(200);
    guest_book.fixture.server.advance(1);
    let refused = guest_book.call(&mut ada, &mine).await;
    refused.problem(401, "identity_required");
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
    // Expired sign-ins are removed.
    let visitors = &guest_book.fixture.server.server().app().visitors;
    visitors.sweep().await.unwrap();
    let control = &guest_book.fixture.server.server().app().control;
    let count = "SELECT count(*) FROM visitor_sessions";
    let left: i64 = control
        .read_blocking(|c| c.query_row(count, [], |row| row.get(0)))
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn only_the_page_itself_calls_as_its_visitor() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    guest_book
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    let own = guest_book.origin.clone();
    let upper = own.to_ascii_uppercase();
    let sites = guest_book.sites.clone();
    let mine = json!({"action": "mine"});
    let cases: [(&[(&'static str, &str)], bool); 13] = [
        (&[("origin", &own)], true),
        (&[("origin", &upper)], true),
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], true),
        (&[], true),
        (&[("sec-fetch-site", "same-origin")], true),
        (&[("origin", "https://evil.example")], false),
        (&[("origin", "null")], false),
        (&[("origin", "")], false),
        (&[("origin", &sites)], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("sec-fetch-site", "same-site")], false),
        (&[("sec-fetch-site", "none")], false),
        (
            &[
                ("origin", "https://evil.example"),
                ("sec-fetch-site", "same-origin"),
            ],
            false,
        ),
    ];
    for (headers, known) in cases {
        let answer = guest_book.call_from(&mut ada, headers, &mine).await;
        if known {
            answer.expect(200);
        } else {
            answer.problem(401, "identity_required");
        }
        // Any page may read what is for everybody.
        let anybody = guest_book
            .call_from(&mut ada, headers, &json!({"action": "all"}))
            .await;
        assert_eq!(
            anybody.expect(200).header("access-control-allow-origin"),
            Some("*")
        );
    }
    let logout = guest_book.url("/auth/logout");
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]);
        let answer = ada.send_request(Method::POST, &logout, headers, None).await;
        answer.problem(403, "origin_refused");
    }
    assert_eq!(guest_book.user(&mut ada).await["name"], "Ada");
}

#[tokio::test]
async fn a_sign_in_leads_back_to_its_own_page_or_is_refused() {
    let stub = StubIssuer::start().await;
    let guest_book = GuestBook::with_issuers(&[("acme", &stub)]).await;
    let mut browser = guest_book.browser();
    for wrong in [
        "https://evil.example/",
        "//evil.example",
        "/other",
        "/roomier",
        "room",
        "/room/../other",
        "/room%2F..%2F..",
        "/room/%2e%2e/x",
        "/room/auth/login",
        "javascript:alert(1)",
        "/\\evil.example",
    ] {
        let wrong = wrong.replace('%', "%25");
        let answer = browser
            .get(&guest_book.url(&format!("/auth/login?return_to={wrong}")))
            .await;
        assert_eq!(answer.status, 400, "{wrong}");
        answer.problem(400, "invalid_request");
    }
    let answer = browser
        .get(&guest_book.url("/auth/login?provider=nobody"))
        .await;
    let back = answer.expect(302).header("location").map(str::to_owned);
    assert_eq!(back, Some(guest_book.failure_url("provider_not_allowed")));
    // A sign-in with invalid parameters is refused on the sites host, too.
    let url = format!(
        "{}/room/auth/login?return_to=https://evil/",
        guest_book.sites
    );
    let answer = browser.get(&url).await;
    answer.problem(400, "invalid_request");
    // The sites host sends browsers to the page's own origin.
    let url = format!(
        "{}/room/auth/login?provider=acme&return_to=/room?a",
        guest_book.sites
    );
    let answer = browser.get(&url).await.expect(302);
    assert_eq!(
        location(&url, &answer),
        guest_book.url("/auth/login?provider=acme&return_to=/room?a")
    );
    assert!(answer.header("set-cookie").is_none());
}

#[tokio::test]
async fn a_quick_share_has_no_sign_in() {
    let server = TestServer::builder()
        .settings(|settings| settings.dev = true)
        .start()
        .await;
    let slug = server
        .publish_slug(&json!({"type": "html", "content": "<p>Hi"}))
        .await;
    for (method, route) in [
        (Method::GET, "login"),
        (Method::GET, "status"),
        (Method::GET, "providers"),
        (Method::GET, "complete?ticket=a"),
        (Method::POST, "logout"),
    ] {
        for slug in [slug.as_str(), "nothing-here"] {
            let request = server.request(method.clone(), &format!("/{slug}/auth/{route}"));
            let answer = svc_tests::ReadAnswer::answer(request).await;
            answer.problem(404, "not_found");
        }
    }
}
