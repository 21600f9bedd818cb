//! Cookies that a sibling below the same sites domain might set.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::{Value, json};
use svc::control::ControlChange;
use svc_tests::browser::Browser;

use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::StubIssuer;

/// A place whose visitors come over https, through a proxy.
async fn start_secure_guest_book(stub: &StubIssuer) -> GuestBook {
    let providers = vec![provider_settings("acme", stub)];
    GuestBook::with_settings(|settings| {
        settings.base_url = Some("https://svc.test".parse().unwrap());
        settings.sites_domain = Some("pages.test".to_owned());
        settings.providers = providers;
    })
    .await
}

/// The one cookie of a browser whose name ends so.
fn cookie_by_suffix(browser: &Browser, part: &str) -> (String, String, Vec<String>) {
    let mut found = browser.cookies.iter().filter(|one| one.name.contains(part));
    let (one, none) = (found.next().expect("a cookie"), found.next());
    assert_eq!(none, None, "{part}");
    let mut attributes: Vec<_> = one.line.split("; ").skip(1).map(str::to_owned).collect();
    attributes.sort();
    (one.name.clone(), one.value.clone(), attributes)
}

/// Visitor who is signed in by a line of cookies.
async fn user_by_cookies(guest_book: &GuestBook, cookies: &str) -> Value {
    let mut browser = guest_book.browser();
    let headers = HeaderMap::from_iter([(header::COOKIE, cookies.parse().unwrap())]);
    let status = guest_book.url("/auth/status");
    let answer = browser
        .send_request(Method::GET, &status, headers, None)
        .await;
    answer.expect(200).json()["user"].clone()
}

#[tokio::test]
async fn over_https_only_the_pages_own_host_sets_them() {
    let stub = StubIssuer::start().await;
    let guest_book = start_secure_guest_book(&stub).await;
    let mut ada = guest_book.browser();
    assert_eq!(
        guest_book.sign_in_with_issuer(&mut ada, "acme").await,
        guest_book.url("")
    );
    let page = guest_book
        .fixture
        .server
        .server()
        .app()
        .serving
        .page("room");
    let id = page.await.unwrap().id;
    let (name, token, attributes) = cookie_by_suffix(&ada, "svc_session_");
    assert_eq!(name, format!("__Host-svc_session_{id}"));
    assert_eq!(
        attributes,
        [
            "HttpOnly",
            "Max-Age=2592000",
            "Path=/",
            "SameSite=Lax",
            "Secure"
        ]
    );
    let (name, _, attributes) = cookie_by_suffix(&ada, "svc_sign_in");
    // No script can set a cookie of this name.
    assert_eq!(name, "__Host-Http-svc_sign_in");
    assert_eq!(
        attributes,
        [
            "HttpOnly",
            "Max-Age=1260",
            "Path=/",
            "SameSite=Lax",
            "Secure"
        ]
    );
    assert_ne!(guest_book.user(&mut ada).await, Value::Null);

    let other = "x".repeat(43);
    for (cookies, signed_in) in [
        (format!("__Host-svc_session_{id}={token}"), true),
        // A cookie that a sibling origin has set for the whole domain.
        (
            format!("svc_session_{id}={other}; __Host-svc_session_{id}={token}"),
            true,
        ),
        (format!("svc_session_{id}={token}"), false),
        (format!("__host-svc_session_{id}={token}"), false),
        (
            format!("__Host-svc_session_{id}={token}; __Host-svc_session_{id}={other}"),
            false,
        ),
    ] {
        let found = user_by_cookies(&guest_book, &cookies).await;
        assert_eq!(found != Value::Null, signed_in, "{cookies}");
    }
    // Signed out, it is taken away where it was set.
    let own = HeaderMap::from_iter([(header::ORIGIN, guest_book.origin.parse().unwrap())]);
    let logout = guest_book.url("/auth/logout");
    let out = ada.send_request(Method::POST, &logout, own, None);
    let out = out.await.expect(204);
    let taken = out.header("set-cookie").unwrap();
    for attribute in ["Secure", "Path=/", "Max-Age=0"] {
        assert!(taken.split("; ").any(|one| one == attribute), "{taken}");
    }
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
}

#[tokio::test]
async fn of_several_cookies_of_one_name_none_counts() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    let form = "name=Ada&email=ada%40example.com";
    guest_book.sign_in(&mut ada, form, "").await;
    let (name, token, _) = cookie_by_suffix(&ada, "svc_session_");
    let other = "x".repeat(43);
    for (cookies, signed_in) in [
        (format!("{name}={token}"), true),
        (format!("a=b; {name}={token}; {name}x={other}"), true),
        (format!("{name}={token}; {name}={other}"), false),
        (format!("{name}={other}; {name}={token}"), false),
        (format!("{name}={token}; {name}={token}"), false),
        (format!("{name}={token}; {name}="), false),
    ] {
        let found = user_by_cookies(&guest_book, &cookies).await;
        assert_eq!(found != Value::Null, signed_in, "{cookies}");
    }
    // The cookie of a running sign-in stays the same.
    let begun = guest_book
        .browser()
        .get(&guest_book.url("/auth/login"))
        .await;
    let cookie = begun.expect(302).header("set-cookie").unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let again = async |line: String| {
        let headers =
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::try_from(line).unwrap())]);
        let login = guest_book.url("/auth/login");
        let mut browser = guest_book.browser();
        let answer = browser
            .send_request(Method::GET, &login, headers, None)
            .await;
        answer.expect(302).header("set-cookie").unwrap().to_owned()
    };
    assert!(again(cookie.to_owned()).await.starts_with(cookie));
    let doubled = again(format!("{cookie}; svc_sign_in={other}")).await;
    assert!(
        !doubled.starts_with(cookie) && !doubled.contains(&other),
        "{doubled}"
    );
}

#[tokio::test]
async fn signing_out_ends_every_session_that_a_cookie_names() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut sessions = Vec::new();
    for who in ["ada", "bob"] {
        let mut browser = guest_book.browser();
        let form = format!("name={who}&email={who}%40example.com");
        guest_book.sign_in(&mut browser, &form, "").await;
        let (name, token, _) = cookie_by_suffix(&browser, "svc_session_");
        sessions.push(format!("{name}={token}"));
    }
    let all = format!("{}; {}", sessions[0], sessions[1]);
    let headers = HeaderMap::from_iter([
        (header::ORIGIN, guest_book.origin.parse().unwrap()),
        (header::COOKIE, all.parse().unwrap()),
    ]);
    let logout = guest_book.url("/auth/logout");
    let mut browser = guest_book.browser();
    let out = browser.send_request(Method::POST, &logout, headers, None);
    let out = out.await.expect(204);
    let taken = out.header("set-cookie").unwrap();
    assert!(taken.contains("Max-Age=0"), "{taken}");
    for session in sessions {
        let user = user_by_cookies(&guest_book, &session).await;
        assert_eq!(user, Value::Null, "a session goes on");
    }
}

#[tokio::test]
async fn signing_out_writes_nothing_for_tokens_of_no_session() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = guest_book.browser();
    let form = "name=Ada&email=ada%40example.com";
    guest_book.sign_in(&mut ada, form, "").await;
    let (name, token, _) = cookie_by_suffix(&ada, "svc_session_");
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let control = &guest_book.fixture.server.server().app().control;
    control.on_change(move |change| {
        if matches!(change, ControlChange::SessionEnded(_)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let [one, other] = ["x", "y"].map(|letter| format!("{name}={}", letter.repeat(43)));
    for (cookies, expected) in [
        (format!("{one}; {other}"), 0),
        (format!("{one}; {name}={token}; {other}"), 1),
    ] {
        let headers = HeaderMap::from_iter([
            (header::ORIGIN, guest_book.origin.parse().unwrap()),
            (header::COOKIE, cookies.parse().unwrap()),
        ]);
        let logout = guest_book.url("/auth/logout");
        let mut browser = guest_book.browser();
        let out = browser.send_request(Method::POST, &logout, headers, None);
        out.await.expect(204);
        assert_eq!(ended.load(Ordering::SeqCst), expected, "{cookies}");
    }
    let session = format!("{name}={token}");
    assert_eq!(user_by_cookies(&guest_book, &session).await, Value::Null);
}

#[tokio::test]
async fn only_a_new_profile_takes_sessions_out_of_the_cache() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut first = guest_book.browser();
    let form = "name=Ada&email=ada%40example.com";
    guest_book.sign_in(&mut first, form, "").await;
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&dropped);
    let control = &guest_book.fixture.server.server().app().control;
    control.on_change(move |change| {
        if matches!(change, ControlChange::SessionsEnded(_)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    for (name, email, expected) in [
        ("Ada", "ada", 0),
        ("Bob", "bob", 0),
        ("Countess", "ada", 1),
        ("Countess", "ada", 1),
    ] {
        let form = format!("name={name}&email={email}%40example.com");
        let mut browser = guest_book.browser();
        guest_book.sign_in(&mut browser, &form, "").await;
        assert_eq!(dropped.load(Ordering::SeqCst), expected, "{form}");
    }
    assert_eq!(guest_book.user(&mut first).await["name"], "Countess");
}

#[tokio::test]
async fn with_https_every_answer_has_browsers_stay_there() {
    let stub = StubIssuer::start().await;
    let guest_book = start_secure_guest_book(&stub).await;
    let server = &guest_book.fixture.server;
    let share = json!({ "content": "x", "name": "share" });
    server.deploy(&share).await;
    for (method, host, path, status) in [
        ("GET", "svc.test", "/share", 200),
        ("HEAD", "svc.test", "/share", 200),
        ("GET", "svc.test", "/nothing", 404),
        ("GET", "svc.test", "/api/v1/projects", 401),
        ("PUT", "svc.test", "/share", 405),
        ("OPTIONS", "svc.test", "/api/v1/deploy", 204),
        ("GET", "svc.test", "/share/", 308),
        ("GET", "svc.test", "/healthz", 200),
        ("POST", "svc.test", "/room/api/op", 400),
        ("GET", "nobody.pages.test", "/room", 404),
        ("GET", "evil.example", "/share", 421),
    ] {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = server.raw(request).await;
        assert_eq!(answer.status, status, "{method} {path}");
        let header = answer.header("strict-transport-security");
        assert_eq!(header, Some("max-age=31536000"), "{method} {path}");
    }
    let plain = GuestBook::with_dev_provider().await;
    let answer = plain.browser().get(&plain.url("")).await.expect(200);
    assert_eq!(answer.header("strict-transport-security"), None);
}
