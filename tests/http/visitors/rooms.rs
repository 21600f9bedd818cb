//! Sockets of rooms that show who is signed in, and the ends of that.

use http::{HeaderMap, Method};
use serde_json::json;
use svc::control::ControlChange;
use svc_tests::Socket;
use svc_tests::browser::Browser;

use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::StubIssuer;
use crate::owner::text;

/// A place whose page has rooms, with two providers.
async fn start_guest_book(stub: &StubIssuer) -> GuestBook {
    let providers = vec![
        provider_settings("acme", stub),
        provider_settings("other", stub),
    ];
    let guest_book = GuestBook::with_settings(|settings| settings.providers = providers).await;
    let on = json!({ "realtime": true });
    guest_book
        .fixture
        .send(Method::PATCH, "", &on)
        .await
        .expect(200);
    guest_book
}

/// A browser in which the issuer's person has signed in.
async fn browser_signed_in(guest_book: &GuestBook) -> Browser {
    let mut browser = guest_book.browser();
    guest_book.sign_in_with_issuer(&mut browser, "acme").await;
    browser
}

/// Joins a room as the page does.
async fn join(guest_book: &GuestBook, browser: &Browser, query: &str) -> Socket {
    let host = guest_book.origin.strip_prefix("http://").unwrap();
    let cookie = browser.cookie(&guest_book.url("/ws")).unwrap_or_default();
    let headers = [
        ("host", host),
        ("origin", &*guest_book.origin),
        ("cookie", &*cookie),
    ];
    let path = format!("/room/ws?room=lobby{query}");
    let mut socket = guest_book
        .fixture
        .server
        .socket(&path, &headers)
        .await
        .unwrap();
    socket.wait_for_envelope("svc:welcome").await;
    socket
}

/// Opens a socket that shows the visitor and one that does not, does something to the session, and sees that the first alone is closed.
async fn assert_only_shown_socket_closes(
    guest_book: &GuestBook,
    browser: &mut Browser,
    end: impl AsyncFnOnce(&mut Browser),
) {
    let mut shown = join(guest_book, browser, "&identify=true").await;
    let mut quiet = join(guest_book, browser, "").await;
    let id = shown.wait_for_envelope("svc:join").await["data"]["client_id"].clone();
    assert!(!text(&id).is_empty());
    end(browser).await;
    assert_eq!(shown.wait_for_close().await, Some(1008));
    quiet.wait_for_envelope("svc:leave").await;
    quiet.send("{}").await;
    quiet.wait_for_envelope("svc:error").await;
}

#[tokio::test]
async fn the_end_of_a_session_closes_what_shows_it() {
    let stub = StubIssuer::start().await;
    let guest_book = start_guest_book(&stub).await;
    let owner = &guest_book.fixture.owner;
    let server = &guest_book.fixture.server;

    let mut ada = browser_signed_in(&guest_book).await;
    assert_only_shown_socket_closes(&guest_book, &mut ada, async |ada: &mut Browser| {
        let own = [(
            "origin".parse().unwrap(),
            guest_book.origin.parse().unwrap(),
        )];
        let logout = guest_book.url("/auth/logout");
        let out = ada.send_request(Method::POST, &logout, HeaderMap::from_iter(own), None);
        out.await.expect(204);
    })
    .await;

    let mut ada = browser_signed_in(&guest_book).await;
    assert_only_shown_socket_closes(&guest_book, &mut ada, async |ada: &mut Browser| {
        let id = text(&guest_book.user(ada).await["id"]);
        let path = format!("/{}/visitors/{id}", guest_book.fixture.project);
        owner.delete(server, &path).await.expect(204);
    })
    .await;

    let mut ada = browser_signed_in(&guest_book).await;
    assert_only_shown_socket_closes(&guest_book, &mut ada, async |_: &mut Browser| {
        let path = format!("/{}", guest_book.fixture.project);
        let body = json!({ "allowed_providers": ["other"] });
        let patch = owner.send(server, Method::PATCH, &path, &body);
        patch.await.expect(200);
        let body = json!({ "allowed_providers": [] });
        let patch = owner.send(server, Method::PATCH, &path, &body);
        patch.await.expect(200);
    })
    .await;

    // Thirty days are shortened here, because the socket would have to answer pings all the time.
    let mut ada = browser_signed_in(&guest_book).await;
    let app = server.server().app();
    let ends = app.clock.now().plus_seconds(30);
    let project = guest_book.fixture.project.parse().unwrap();
    let shorten = app.control.write(move |tx| {
        tx.execute("UPDATE visitor_sessions SET expires_at = ?1", [ends])?;
        tx.note(ControlChange::SessionsEnded(project));
        Ok::<_, svc::control::Error>(())
    });
    shorten.await.unwrap();
    assert_only_shown_socket_closes(&guest_book, &mut ada, async |_: &mut Browser| {
        server.advance(31);
    })
    .await;
}

#[tokio::test]
async fn who_stays_signed_in_stays_in_the_room() {
    let stub = StubIssuer::start().await;
    let guest_book = start_guest_book(&stub).await;
    let (ada, mut other) = (
        browser_signed_in(&guest_book).await,
        browser_signed_in(&guest_book).await,
    );
    let mut shown = join(&guest_book, &ada, "&identify=true").await;
    assert_only_shown_socket_closes(&guest_book, &mut other, async |other: &mut Browser| {
        let own = [(
            "origin".parse().unwrap(),
            guest_book.origin.parse().unwrap(),
        )];
        let logout = guest_book.url("/auth/logout");
        let out = other.send_request(Method::POST, &logout, HeaderMap::from_iter(own), None);
        out.await.expect(204);
    })
    .await;
    shown.send("{}").await;
    shown.wait_for_envelope("svc:error").await;
}
