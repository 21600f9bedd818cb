//! Queries that are a visitor's own: by the session that the connection was opened with, until it ends.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::Socket;
use svc_tests::browser::Browser;

use super::stream::Stream;
use super::{assert_still_served, next_error, next_rows, subscribe, subscribe_and_read_first};
use crate::visitors::GuestBook;

/// Opens a browser with a signed-in visitor.
async fn browser_signed_in(guest_book: &GuestBook, name: &str) -> Browser {
    let mut browser = guest_book.browser();
    let form = format!("name={name}&email={name}%40example.com");
    guest_book.sign_in(&mut browser, &form, "").await;
    browser
}

/// Opens a socket as the page does, or as a page of another origin would.
async fn open(guest_book: &GuestBook, browser: Option<&Browser>) -> Socket {
    let host = guest_book.origin.strip_prefix("http://").unwrap();
    let cookie = browser.and_then(|browser| browser.cookie(&guest_book.url("/api/live")));
    let mut headers = vec![("host", host), ("origin", guest_book.origin.as_str())];
    if let Some(cookie) = &cookie {
        headers.push(("cookie", cookie));
    }
    guest_book
        .fixture
        .server
        .socket("/room/api/live", &headers)
        .await
        .unwrap()
}

async fn sign_guest_book(guest_book: &GuestBook, browser: &mut Browser, words: &str) {
    let body = json!({ "action": "sign", "params": { "words": words } });
    guest_book.call(browser, &body).await.expect(200);
}

/// The words of rows.
fn words_of_rows(rows: &Value) -> Vec<&str> {
    rows.as_array()
        .unwrap()
        .iter()
        .map(|row| row["words"].as_str().unwrap())
        .collect()
}

async fn log_out(guest_book: &GuestBook, browser: &mut Browser) {
    let headers = [(
        "origin".parse().unwrap(),
        guest_book.origin.parse().unwrap(),
    )];
    let url = guest_book.url("/auth/logout");
    browser
        .send_request(Method::POST, &url, HeaderMap::from_iter(headers), None)
        .await
        .expect(204);
}

#[tokio::test]
async fn each_visitor_is_told_their_own() {
    let guest_book = GuestBook::with_dev_provider().await;
    let (mut ada, mut bob) = (
        browser_signed_in(&guest_book, "ada").await,
        browser_signed_in(&guest_book, "bob").await,
    );
    let (mut for_ada, mut for_bob) = (
        open(&guest_book, Some(&ada)).await,
        open(&guest_book, Some(&bob)).await,
    );
    for socket in [&mut for_ada, &mut for_bob] {
        assert_eq!(
            subscribe_and_read_first(socket, "mine", "mine", &json!({})).await["result"]["rows"],
            json!([])
        );
        subscribe_and_read_first(socket, "all", "all", &json!({})).await;
    }
    sign_guest_book(&guest_book, &mut ada, "of ada").await;
    let mut told = [for_ada.envelope().await, for_ada.envelope().await];
    told.sort_by_key(|frame| frame["id"].to_string());
    assert_eq!(words_of_rows(&told[0]["result"]["rows"]), ["of ada"]);
    assert_eq!(told[1]["result"]["rows"][0]["email"], "ada@example.com");
    // Bob's own has not changed.
    assert_eq!(
        words_of_rows(&next_rows(&mut for_bob, "all", 2).await),
        ["of ada"]
    );
    assert_still_served(&mut for_bob).await;
    sign_guest_book(&guest_book, &mut bob, "of bob").await;
    let mut told = [for_bob.envelope().await, for_bob.envelope().await];
    told.sort_by_key(|frame| frame["id"].to_string());
    assert_eq!(words_of_rows(&told[1]["result"]["rows"]), ["of bob"]);
    // Anonymous visitors are all the same.
    let mut nobody = open(&guest_book, None).await;
    nobody.send(subscribe("mine", "mine", &json!({}))).await;
    next_error(&mut nobody, Some("mine"), "identity_required").await;
    subscribe_and_read_first(&mut nobody, "all", "all", &json!({})).await;
}

#[tokio::test]
async fn the_end_of_a_session_ends_what_used_it_and_nothing_else() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = browser_signed_in(&guest_book, "ada").await;
    let mut socket = open(&guest_book, Some(&ada)).await;
    subscribe_and_read_first(&mut socket, "mine", "mine", &json!({})).await;
    subscribe_and_read_first(&mut socket, "all", "all", &json!({})).await;
    log_out(&guest_book, &mut ada).await;
    let told = next_error(&mut socket, Some("mine"), "identity_required").await;
    assert_eq!(told["problem"]["status"], 401);
    socket.send(subscribe("mine", "mine", &json!({}))).await;
    next_error(&mut socket, Some("mine"), "identity_required").await;
    let mut bob = browser_signed_in(&guest_book, "bob").await;
    sign_guest_book(&guest_book, &mut bob, "of bob").await;
    assert_eq!(
        words_of_rows(&next_rows(&mut socket, "all", 2).await),
        ["of bob"]
    );
}

#[tokio::test]
async fn an_action_that_becomes_a_visitors_own_is_followed_by_who_is_one() {
    let guest_book = GuestBook::with_dev_provider().await;
    let ada = browser_signed_in(&guest_book, "ada").await;
    let mut sockets = [
        open(&guest_book, Some(&ada)).await,
        open(&guest_book, None).await,
    ];
    for socket in &mut sockets {
        subscribe_and_read_first(socket, "a", "all", &json!({})).await;
    }
    let sql = "SELECT :svc_user_email AS email, :svc_user_name AS name";
    guest_book.fixture.define(&[("all", sql)]).await;
    let [for_ada, nobody] = &mut sockets;
    assert_eq!(
        next_rows(for_ada, "a", 2).await,
        json!([{ "email": "ada@example.com", "name": "ada" }])
    );
    next_error(nobody, Some("a"), "identity_required").await;
    guest_book
        .fixture
        .define(&[("all", "SELECT 'everybody' AS email")])
        .await;
    assert_eq!(
        next_rows(for_ada, "a", 3).await,
        json!([{ "email": "everybody" }])
    );
}

#[tokio::test]
async fn a_stream_counts_a_session_as_a_call_does() {
    let guest_book = GuestBook::with_dev_provider().await;
    let ada = browser_signed_in(&guest_book, "ada").await;
    let cookie = ada.cookie(&guest_book.url("/api/live")).unwrap();
    let host = guest_book.origin.strip_prefix("http://").unwrap();
    for (headers, status) in [
        (vec![("origin", guest_book.origin.as_str())], 200),
        (vec![], 200),
        (vec![("sec-fetch-site", "same-origin")], 200),
        (vec![("sec-fetch-site", "cross-site")], 401),
        (vec![("origin", "https://elsewhere.example")], 401),
    ] {
        let mut request = guest_book
            .fixture
            .server
            .get("/room/api/live?action=mine")
            .header("accept", "text/event-stream")
            .header("host", host)
            .header("cookie", &cookie);
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        assert_eq!(
            request.send().await.unwrap().status(),
            status,
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_stream_with_the_reason() {
    let guest_book = GuestBook::with_dev_provider().await;
    let mut ada = browser_signed_in(&guest_book, "ada").await;
    let stream = async |action: &str| {
        let request = guest_book
            .fixture
            .server
            .get(&format!("/room/api/live?action={action}"))
            .header("accept", "text/event-stream")
            .header("host", guest_book.origin.strip_prefix("http://").unwrap())
            .header("cookie", ada.cookie(&guest_book.url("/api/live")).unwrap());
        let mut stream = Stream::open(request).await;
        stream.next_result(1).await;
        stream
    };
    let (mut own, mut everybodys) = (stream("mine").await, stream("all").await);
    log_out(&guest_book, &mut ada).await;
    own.problem(401, "identity_required").await;
    let mut bob = browser_signed_in(&guest_book, "bob").await;
    sign_guest_book(&guest_book, &mut bob, "of bob").await;
    assert_eq!(
        words_of_rows(&everybodys.next_result(2).await["rows"]),
        ["of bob"]
    );
}
