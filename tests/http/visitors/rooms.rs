//! Sockets of rooms that show who is signed in, and the ends of that.

use http::{HeaderMap, Method};
use serde_json::json;
use svc_tests::Socket;
use svc_tests::browser::Browser;

use super::place::{Place, provider};
use super::stub::Stub;
use crate::account::text;

/// A place whose page has rooms, with two providers.
async fn place(stub: &Stub) -> Place {
    let providers = vec![provider("acme", stub), provider("other", stub)];
    let place = Place::with(|settings| settings.providers = providers).await;
    let on = json!({ "realtime": true });
    place.house.send(Method::PATCH, "", &on).await.expect(200);
    place
}

/// A browser in which the issuer's person has signed in.
async fn signed_in(place: &Place) -> Browser {
    let mut browser = place.browser();
    place.walk(&mut browser, "acme").await;
    browser
}

/// Joins a room as the page does.
async fn join(place: &Place, browser: &Browser, query: &str) -> Socket {
    let host = place.origin.strip_prefix("http://").unwrap();
    let cookie = browser.cookie(&place.url("/ws")).unwrap_or_default();
    let headers = [
        ("host", host),
        ("origin", &*place.origin),
        ("cookie", &*cookie),
    ];
    let path = format!("/room/ws?room=lobby{query}");
    let mut socket = place.house.server.socket(&path, &headers).await.unwrap();
    socket.until("svc:welcome").await;
    socket
}

/// Opens a socket that shows the visitor and one that does not, does something to the session, and sees that the first alone is closed.
async fn closes(place: &Place, browser: &mut Browser, end: impl AsyncFnOnce(&mut Browser)) {
    let mut shown = join(place, browser, "&identify=true").await;
    let mut quiet = join(place, browser, "").await;
    let id = shown.until("svc:join").await["data"]["client_id"].clone();
    assert!(!text(&id).is_empty());
    end(browser).await;
    assert_eq!(shown.closed().await, Some(1008));
    quiet.until("svc:leave").await;
    quiet.send("{}").await;
    quiet.until("svc:error").await;
}

#[tokio::test]
async fn the_end_of_a_session_closes_what_shows_it() {
    let stub = Stub::start().await;
    let place = place(&stub).await;
    let owner = &place.house.owner;
    let server = &place.house.server;

    let mut ada = signed_in(&place).await;
    closes(&place, &mut ada, async |ada: &mut Browser| {
        let own = [("origin".parse().unwrap(), place.origin.parse().unwrap())];
        let logout = place.url("/auth/logout");
        let out = ada.ask(Method::POST, &logout, HeaderMap::from_iter(own), None);
        out.await.expect(204);
    })
    .await;

    let mut ada = signed_in(&place).await;
    closes(&place, &mut ada, async |ada: &mut Browser| {
        let id = text(&place.user(ada).await["id"]);
        let path = format!("/{}/visitors/{id}", place.house.project);
        owner.delete(server, &path).await.expect(204);
    })
    .await;

    let mut ada = signed_in(&place).await;
    closes(&place, &mut ada, async |_: &mut Browser| {
        let path = format!("/{}", place.house.project);
        let body = json!({ "allowed_providers": ["other"] });
        let patch = owner.send(server, Method::PATCH, &path, &body);
        patch.await.expect(200);
        let body = json!({ "allowed_providers": [] });
        let patch = owner.send(server, Method::PATCH, &path, &body);
        patch.await.expect(200);
    })
    .await;

    // Thirty days are shortened here, because the socket would have to answer pings all the time.
    let mut ada = signed_in(&place).await;
    let app = server.server().app();
    let ends = app.clock.now().plus_seconds(30);
    let shorten = app.control.write(move |tx| {
        tx.execute("UPDATE visitor_sessions SET expires_at = ?1", [ends])?;
        Ok::<_, svc::control::Error>(())
    });
    shorten.await.unwrap();
    app.visitors
        .invalidate_sessions(place.house.project.parse().unwrap());
    closes(&place, &mut ada, async |_: &mut Browser| server.advance(31)).await;
}

#[tokio::test]
async fn who_stays_signed_in_stays_in_the_room() {
    let stub = Stub::start().await;
    let place = place(&stub).await;
    let (ada, mut other) = (signed_in(&place).await, signed_in(&place).await);
    let mut shown = join(&place, &ada, "&identify=true").await;
    closes(&place, &mut other, async |other: &mut Browser| {
        let own = [("origin".parse().unwrap(), place.origin.parse().unwrap())];
        let logout = place.url("/auth/logout");
        let out = other.ask(Method::POST, &logout, HeaderMap::from_iter(own), None);
        out.await.expect(204);
    })
    .await;
    shown.send("{}").await;
    shown.until("svc:error").await;
}
