//! Ends under a socket: of realtime, its backend, its project, its frontend, its server.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, Socket, TestServer};

use super::{join, join_page, set_realtime, start_fixture, start_fixture_with};
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::svc;

/// Asserts that a socket is still served.
async fn assert_still_served(socket: &mut Socket) {
    socket.send("{}").await;
    socket.wait_for_envelope("svc:error").await;
}

/// Sees that the page of a fixture has no rooms.
async fn assert_no_rooms(fixture: &ProjectFixture) {
    let refused = fixture.server.socket("/room/ws?room=a", &[]).await;
    assert_eq!(refused.unwrap_err(), 404);
}

#[tokio::test]
async fn realtime_switched_off_closes_and_switched_on_opens() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, _) = join(&fixture, "b").await;
    let off = set_realtime(&fixture, false).await;
    assert_eq!(
        off["realtime"],
        json!({ "enabled": false, "rooms": 0, "sockets": 0 })
    );
    assert_eq!(ada.wait_for_close().await, Some(1001));
    assert_eq!(bob.wait_for_close().await, Some(1001));
    assert_no_rooms(&fixture).await;
    set_realtime(&fixture, true).await;
    let (mut again, _) = join(&fixture, "a").await;
    // Switching on what is on changes nothing.
    set_realtime(&fixture, true).await;
    assert_still_served(&mut again).await;
}

#[tokio::test]
async fn realtime_is_switched_alone() {
    let fixture = start_fixture().await;
    for body in [
        json!({ "realtime": true, "note": "x" }),
        json!({ "realtime": true, "ddl": "CREATE TABLE t (a)" }),
    ] {
        let answer = fixture.send(Method::PATCH, "", &body).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_deleted_backend_closes() {
    let fixture = start_fixture().await;
    let (mut socket, _) = join(&fixture, "a").await;
    fixture.delete().await.expect(204);
    assert_eq!(socket.wait_for_close().await, Some(1001));
    assert_no_rooms(&fixture).await;
    fixture.create(GUESTS).await.expect(201);
    assert_no_rooms(&fixture).await;
}

#[tokio::test]
async fn a_deleted_frontend_closes_its_own_sockets() {
    let fixture = start_fixture().await;
    fixture.publish("annex").await;
    let (mut ada, ada_id) = join(&fixture, "a").await;
    let (mut bob, _) = join_page(&fixture, "annex", "a").await;
    let path = format!("/{}/frontends/room", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    assert_eq!(ada.wait_for_close().await, Some(1001));
    assert_eq!(
        bob.wait_for_envelope("svc:leave").await["data"]["client_id"],
        *ada_id
    );
    assert_still_served(&mut bob).await;
}

#[tokio::test]
async fn a_slug_that_another_page_takes_closes_too() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let path = format!("/{}/frontends/room", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    fixture.publish("room").await;
    assert_eq!(ada.wait_for_close().await, Some(1001));
    let (mut again, _) = join(&fixture, "a").await;
    assert_still_served(&mut again).await;
}

#[tokio::test]
async fn a_republished_frontend_keeps_its_sockets() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, _) = join(&fixture, "a").await;
    let path = format!("/{}/frontends/room", fixture.project);
    let body = json!({ "content": "# Two" });
    let put = fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &body)
        .await;
    put.expect(200);
    ada.drain_envelopes().await;
    ada.send_envelope("on", json!(1)).await;
    bob.wait_for_envelope("on").await;
}

#[tokio::test]
async fn a_deleted_project_closes() {
    let fixture = start_fixture().await;
    let (mut socket, _) = join(&fixture, "a").await;
    fixture
        .owner
        .delete(&fixture.server, &format!("/{}", fixture.project))
        .await
        .expect(204);
    assert_eq!(socket.wait_for_close().await, Some(1001));
}

#[tokio::test]
async fn an_expired_project_closes() {
    let server = TestServer::start().await;
    let owner = crate::owner::Owner::new(&server, "acme").await;
    let brief = json!({ "name": "Brief", "ttl_seconds": 60 });
    let project = owner.post(&server, "", &brief).await.expect(201).json();
    let project = crate::owner::text(&project["id"]);
    let backend = json!({ "ddl": GUESTS, "realtime": true });
    owner
        .post(&server, &format!("/{project}/backend"), &backend)
        .await
        .expect(201);
    owner.frontend(&server, &project, "brief").await;
    let mut socket = server.socket("/brief/ws?room=a", &[]).await.unwrap();
    socket.wait_for_envelope("svc:welcome").await;
    // Past the end, and not as far as the deadline of a pong.
    server.advance(30);
    socket.drain_envelopes().await;
    server.advance(31);
    assert_eq!(socket.wait_for_close().await, Some(1001));
}

#[tokio::test]
async fn a_disabled_page_closes_its_own_sockets_and_may_come_back() {
    let fixture = start_fixture_with(TestServer::builder().system_clock()).await;
    fixture.publish("annex").await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (mut bob, _) = join_page(&fixture, "annex", "a").await;
    let disabled = fixture
        .server
        .command(&svc(), &["deployment", "disable", "room"])
        .await;
    assert!(disabled.success);
    assert_eq!(ada.wait_for_close().await, Some(1008));
    assert_still_served(&mut bob).await;
    let enabled = fixture
        .server
        .command(&svc(), &["deployment", "enable", "room"])
        .await;
    assert!(enabled.success);
    let opened = async || fixture.server.socket("/room/ws?room=a", &[]).await.ok();
    svc_tests::wait_until("the page to be enabled", opened).await;
}

#[tokio::test]
async fn a_stop_tells_its_sockets_first() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let (bob, _) = join(&fixture, "a").await;
    let listening = tokio::spawn(async move { ada.wait_for_close().await });
    // A client that does not answer the close does not delay the stop.
    let server = fixture.server;
    server.stop().await;
    assert_eq!(listening.await.unwrap(), Some(1001));
    drop(bob);
}

#[tokio::test]
async fn other_connections_are_served_while_sockets_are_open() {
    let fixture = start_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    for _ in 0..3 {
        fixture.server.get("/room").answer().await.expect(200);
    }
    assert_still_served(&mut ada).await;
}
