//! The upgrade: who may open a socket, where, and how a refusal is told.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use super::{join, set_realtime, start_fixture, start_fixture_with};
use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

/// A request for an upgrade, for those that are refused.
fn upgrade_request(fixture: &ProjectFixture, path: &str) -> reqwest::RequestBuilder {
    fixture
        .server
        .get(path)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn a_room_has_a_name() {
    let fixture = start_fixture().await;
    let longest = "x".repeat(64);
    for room in ["a", "Z9._~-", &longest, "%61bc"] {
        let path = format!("/room/ws?room={room}");
        fixture.server.socket(&path, &[]).await.expect(room);
    }
    let longer = "x".repeat(65);
    for query in [
        "",
        "?room=",
        "?room=.a",
        "?room=-a",
        "?room=a%20b",
        "?room=a%2Fb",
        "?room=%C3%A9",
        "?room=svc:a",
        "?room=a&room=b",
        "?rooms=a",
        &format!("?room={longer}"),
    ] {
        let answer = upgrade_request(&fixture, &format!("/room/ws{query}"))
            .answer()
            .await;
        answer.problem(400, "invalid_room");
    }
}

#[tokio::test]
async fn a_browser_comes_from_the_page_itself() {
    let fixture = start_fixture().await;
    let port = fixture.server.address().port();
    let own = format!("http://127.0.0.1:{port}");
    let path = "/room/ws?room=a";
    fixture.server.socket(path, &[]).await.unwrap();
    fixture
        .server
        .socket(path, &[("origin", &own)])
        .await
        .unwrap();
    for foreign in [
        "null",
        "http://evil.example",
        "http://127.0.0.1",
        &format!("https://127.0.0.1:{port}"),
        &format!("http://localhost:{port}"),
    ] {
        let answer = upgrade_request(&fixture, path)
            .header("origin", foreign)
            .answer()
            .await;
        answer.problem(403, "origin_refused");
    }
    let twice = upgrade_request(&fixture, path)
        .header("origin", &own)
        .header("origin", &own);
    twice.answer().await.problem(400, "invalid_request");
}

#[tokio::test]
async fn rooms_are_at_home_on_the_projects_origin_too() {
    let fixture = start_fixture().await;
    let detail = fixture
        .owner
        .get(&fixture.server, &format!("/{}", fixture.project))
        .await;
    let label = text(&detail.expect(200).json()["host_label"]);
    let port = fixture.server.address().port();
    let host = format!("{label}.localhost:{port}");
    let origin = format!("http://{host}");
    let path = "/room/ws?room=a";
    let mut socket = fixture
        .server
        .socket(path, &[("host", &host), ("origin", &origin)])
        .await
        .unwrap();
    assert_eq!(socket.envelope().await["type"], "svc:welcome");
    let sites = format!("http://localhost:{port}");
    for (host, origin, status) in [
        (host.as_str(), sites.as_str(), 403),
        ("evil.example", "http://evil.example", 421),
        (
            &format!("nobody.localhost:{port}"),
            &format!("http://nobody.localhost:{port}"),
            404,
        ),
    ] {
        let refused = fixture
            .server
            .socket(path, &[("host", host), ("origin", origin)])
            .await;
        assert_eq!(refused.unwrap_err(), status, "{host} {origin}");
    }
}

#[tokio::test]
async fn what_is_no_upgrade_is_told_so() {
    let fixture = start_fixture().await;
    let path = "/room/ws?room=a";
    let plain = fixture.server.get(path).answer().await;
    plain.problem(400, "invalid_request");
    assert_eq!(plain.header("upgrade"), Some("websocket"));
    let old = fixture.server.get(path);
    let old = old
        .header("connection", "Upgrade")
        .header("upgrade", "websocket");
    let answer = old.header("sec-websocket-version", "8").answer().await;
    answer.problem(400, "invalid_request");
    assert_eq!(answer.header("sec-websocket-version"), Some("13"));
    for key in ["", "short", "c2hvcnQ="] {
        let asked = fixture
            .server
            .get(path)
            .header("connection", "keep-alive, Upgrade");
        let asked = asked
            .header("upgrade", "WebSocket")
            .header("sec-websocket-version", "13");
        let answer = asked.header("sec-websocket-key", key).answer().await;
        answer.problem(400, "invalid_request");
    }
    let post = fixture.server.post(path).answer().await;
    post.problem(405, "method_not_allowed");
    let head = fixture.server.head(path).answer().await;
    assert_eq!(head.status, 400);
}

#[tokio::test]
async fn only_a_frontend_whose_backend_has_realtime_has_rooms() {
    let fixture = ProjectFixture::on_server(TestServer::start().await, GUESTS).await;
    let path = "/room/ws?room=a";
    upgrade_request(&fixture, path)
        .answer()
        .await
        .problem(404, "not_found");
    // Before the room and the origin are looked at.
    let odd = upgrade_request(&fixture, "/room/ws?room=.").header("origin", "null");
    odd.answer().await.problem(404, "not_found");
    let switched = set_realtime(&fixture, true).await;
    assert_eq!(
        switched["realtime"],
        json!({ "enabled": true, "rooms": 0, "sockets": 0 })
    );
    fixture.server.socket(path, &[]).await.unwrap();
    set_realtime(&fixture, false).await;
    upgrade_request(&fixture, path)
        .answer()
        .await
        .problem(404, "not_found");
    upgrade_request(&fixture, "/nowhere/ws?room=a")
        .answer()
        .await
        .problem(404, "not_found");
    fixture
        .server
        .publish_slug(&json!({ "content": "x", "name": "share" }))
        .await;
    upgrade_request(&fixture, "/share/ws?room=a")
        .answer()
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_backend_may_be_made_with_rooms() {
    let fixture = ProjectFixture::without_backend(TestServer::start().await).await;
    let body = json!({ "ddl": GUESTS, "realtime": true });
    let made = fixture.send(Method::POST, "", &body).await.expect(201);
    assert_eq!(made.json()["realtime"]["enabled"], true);
    fixture.publish("room").await;
    join(&fixture, "a").await;
}

#[tokio::test]
async fn a_disabled_page_has_no_rooms() {
    let fixture = start_fixture_with(TestServer::builder().system_clock()).await;
    let disable = ["deployment", "disable", "room"];
    let (mut socket, _) = join(&fixture, "a").await;
    assert!(fixture.server.command(&svc(), &disable).await.success);
    assert_eq!(socket.wait_for_close().await, Some(1008));
    upgrade_request(&fixture, "/room/ws?room=a")
        .answer()
        .await
        .problem(403, "disabled");
}

#[tokio::test]
async fn the_backends_detail_counts_rooms_and_sockets() {
    let fixture = start_fixture().await;
    let (ada, _) = join(&fixture, "lobby").await;
    let (_bob, _) = join(&fixture, "lobby").await;
    let (_eve, _) = join(&fixture, "garden").await;
    let counted = json!({ "enabled": true, "rooms": 2, "sockets": 3 });
    assert_eq!(fixture.detail().await["realtime"], counted);
    ada.close().await;
    let counted = json!({ "enabled": true, "rooms": 2, "sockets": 2 });
    assert_eq!(fixture.detail().await["realtime"], counted);
}
