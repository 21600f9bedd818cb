//! States, tickets and sessions, walked with the wrong browser, page, host and time, twice, and across a restart.

use http::{HeaderMap, HeaderName, Method};
use serde_json::{Value, json};
use svc_tests::TestServer;
use svc_tests::browser::location;

use super::place::{Place, provider, stable};
use super::stub::Stub;

#[tokio::test]
async fn a_state_is_good_once_in_time_and_for_its_provider() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub), ("other", &stub)]).await;
    let mut browser = place.browser();
    let asked = place.begin(&mut browser, "?provider=acme").await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = place.come_back(&mut browser, "acme", &query).await;
    // The callback once more, as the back button does: the first time counts.
    let again = place.come_back(&mut browser, "acme", &query).await;
    assert_eq!(again, place.failed("state_invalid"));
    assert_eq!(stub.count("/token"), 1);
    let answer = browser.get(&complete).await;
    assert_eq!(location(&complete, &answer), place.url(""));
    // Too late.
    let asked = place.begin(&mut browser, "?provider=acme").await;
    place.fixture.server.advance(601);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let late = place.come_back(&mut browser, "acme", &query).await;
    assert_eq!(late, place.failed("state_invalid"));
    // What is none of ours leads nowhere.
    for state in [
        "",
        "state=",
        "state=abc",
        &format!("state={}A", asked["state"]),
        "state=a&state=b",
    ] {
        let url = format!("{}/_svc/auth/callback/acme?code=x&{state}", place.sites);
        let answer = browser.get(&url).await;
        answer.problem(400, "invalid_request");
    }
    // Nor does an address of a provider that there is not.
    let asked = place.begin(&mut browser, "?provider=acme").await;
    let query = format!("code=x&state={}", asked["state"]);
    let found = place.come_back(&mut browser, "nobody", &query).await;
    assert_eq!(found, place.failed("state_invalid"));
}

#[tokio::test]
async fn a_ticket_is_good_once_for_a_minute_and_for_its_browser_and_page() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    place.fixture.publish("sibling").await;
    let (mut ada, mut eve) = (place.browser(), place.browser());
    let refused = place.failed("ticket_invalid");

    let ticket = place.ticket(&mut ada, "acme").await;
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), place.url(""));
    let user = place.user(&mut ada).await;
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    assert_eq!(place.user(&mut ada).await, user, "the session stays");

    // Another browser, which began one of its own: whoever sends somebody else to the end of their sign-in signs nobody in.
    place.begin(&mut eve, "").await;
    let ticket = place.ticket(&mut ada, "acme").await;
    let answer = eve.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);
    assert_eq!(place.user(&mut eve).await, Value::Null);
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused, "it is used up");

    let ticket = place.ticket(&mut ada, "acme").await;
    place.fixture.server.advance(61);
    let answer = ada.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), refused);

    let ticket = place.ticket(&mut ada, "acme").await;
    let sibling = ticket.replace("/room/", "/sibling/");
    let answer = ada.get(&sibling).await.expect(302);
    let expected = format!("{}/sibling?auth_error=ticket_invalid", place.origin);
    assert_eq!(location(&sibling, &answer), expected);

    for query in ["", "?ticket=", "?ticket=abc"] {
        let url = place.url(&format!("/auth/complete{query}"));
        let answer = ada.get(&url).await.expect(302);
        assert_eq!(location(&url, &answer), refused);
    }
}

#[tokio::test]
async fn two_tabs_sign_in_beside_each_other() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
    let first = place.begin(&mut browser, "?return_to=/room?tab=1").await;
    let second = place.begin(&mut browser, "?return_to=/room?tab=2").await;
    for (asked, tab) in [(second, 2), (first, 1)] {
        let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
        let complete = place.come_back(&mut browser, "acme", &query).await;
        let answer = browser.get(&complete).await.expect(302);
        assert_eq!(
            location(&complete, &answer),
            place.url(&format!("?tab={tab}"))
        );
    }
    // The later session is the only one: the one before has ended.
    let count = "SELECT count(*) FROM visitor_sessions";
    let control = &place.fixture.server.server().app().control;
    let sessions: i64 = control
        .read_blocking(|c| c.query_row(count, [], |row| row.get(0)))
        .unwrap();
    assert_eq!(sessions, 1);
}

#[tokio::test]
async fn where_projects_have_no_origins_the_callback_knows_the_browser() {
    let stub = Stub::start().await;
    let place = Place::with(|settings| {
        settings.base_url = Some("https://svc.test".parse().unwrap());
        settings.providers = vec![provider("acme", &stub)];
    })
    .await;
    assert_eq!(place.origin, "https://svc.test");
    let (mut ada, mut eve) = (place.browser(), place.browser());
    let asked = place.begin(&mut ada, "").await;
    place.begin(&mut eve, "").await;
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let stolen = place.come_back(&mut eve, "acme", &query).await;
    assert_eq!(stolen, place.failed("state_invalid"));
    assert_eq!(stub.count("/token"), 0);
    // It was not used up by that.
    let complete = place.come_back(&mut ada, "acme", &query).await;
    ada.get(&complete).await.expect(302);
    assert_eq!(place.user(&mut ada).await["name"], "Ada");
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
    let stub = Stub::start().await;
    let place = Place::with(|settings| stable(settings, &stub)).await;
    let (mut ada, mut bob) = (place.browser(), place.browser());
    place.walk(&mut ada, "acme").await;
    let user = place.user(&mut ada).await;
    let asked = place.begin(&mut bob, "").await;
    let ticket = place.ticket(&mut place.browser(), "acme").await;

    let place = place.moved(TestServer::restart).await;
    let (mut ada, mut bob) = (place.browser_of(&ada), place.browser_of(&bob));
    assert_eq!(place.user(&mut ada).await, user);
    let query = format!("code={}&state={}", asked["nonce"], asked["state"]);
    let complete = place.come_back(&mut bob, "acme", &query).await;
    bob.get(&complete).await.expect(302);
    assert_eq!(place.user(&mut bob).await["id"], user["id"]);
    // A ticket does not, and says so.
    let answer = bob.get(&ticket).await.expect(302);
    assert_eq!(location(&ticket, &answer), place.failed("ticket_invalid"));
}

#[tokio::test]
async fn a_session_ends_after_thirty_days_whatever_its_visitor_does() {
    let place = Place::developing().await;
    let mut ada = place.browser();
    place
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    let mine = json!({"action": "mine"});
    for _ in 0..29 {
        place.fixture.server.advance(24 * 3600);
        place.call(&mut ada, &mine).await.expect(200);
    }
    place.fixture.server.advance(24 * 3600 - 1);
    place.call(&mut ada, &mine).await.expect(200);
    place.fixture.server.advance(1);
    let refused = place.call(&mut ada, &mine).await;
    refused.problem(401, "identity_required");
    assert_eq!(place.user(&mut ada).await, Value::Null);
    // What is over is removed.
    let visitors = &place.fixture.server.server().app().visitors;
    visitors.sweep().await.unwrap();
    let control = &place.fixture.server.server().app().control;
    let count = "SELECT count(*) FROM visitor_sessions";
    let left: i64 = control
        .read_blocking(|c| c.query_row(count, [], |row| row.get(0)))
        .unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn only_the_page_itself_calls_as_its_visitor() {
    let place = Place::developing().await;
    let mut ada = place.browser();
    place
        .sign_in(&mut ada, "name=Ada&email=a%40example.com", "")
        .await;
    let own = place.origin.clone();
    let upper = own.to_ascii_uppercase();
    let sites = place.sites.clone();
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
        let answer = place.call_from(&mut ada, headers, &mine).await;
        if known {
            answer.expect(200);
        } else {
            answer.problem(401, "identity_required");
        }
        // Any page may read what is for everybody.
        let anybody = place
            .call_from(&mut ada, headers, &json!({"action": "all"}))
            .await;
        assert_eq!(
            anybody.expect(200).header("access-control-allow-origin"),
            Some("*")
        );
    }
    let logout = place.url("/auth/logout");
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
    assert_eq!(place.user(&mut ada).await["name"], "Ada");
}

#[tokio::test]
async fn a_sign_in_leads_back_to_its_own_page_or_is_refused() {
    let stub = Stub::start().await;
    let place = Place::with_issuers(&[("acme", &stub)]).await;
    let mut browser = place.browser();
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
            .get(&place.url(&format!("/auth/login?return_to={wrong}")))
            .await;
        answer.problem(400, "invalid_request");
    }
    let answer = browser.get(&place.url("/auth/login?provider=nobody")).await;
    let back = answer.expect(302).header("location").map(str::to_owned);
    assert_eq!(back, Some(place.failed("provider_not_allowed")));
    // What cannot begin is refused on the sites host, too.
    let url = format!("{}/room/auth/login?return_to=https://evil/", place.sites);
    let answer = browser.get(&url).await;
    answer.problem(400, "invalid_request");
    // The sites host sends browsers to the page's own origin.
    let url = format!(
        "{}/room/auth/login?provider=acme&return_to=/room?a",
        place.sites
    );
    let answer = browser.get(&url).await.expect(302);
    assert_eq!(
        location(&url, &answer),
        place.url("/auth/login?provider=acme&return_to=/room?a")
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
