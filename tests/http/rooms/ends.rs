//! Ends under a socket: of realtime, its backend, its project, its frontend, its server.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, Socket, TestServer};

use super::{house, house_on, join, join_by, switch};
use crate::house::{GUESTS, House};
use crate::svc;

/// Sees that a socket is still served.
async fn lives(socket: &mut Socket) {
    socket.send("{}").await;
    socket.wait_for_envelope("svc:error").await;
}

/// Sees that the page of a house has no rooms.
async fn has_no_rooms(house: &House) {
    let refused = house.server.socket("/room/ws?room=a", &[]).await;
    assert_eq!(refused.unwrap_err(), 404);
}

#[tokio::test]
async fn realtime_switched_off_closes_and_switched_on_opens() {
    let house = house().await;
    let (mut ada, _) = join(&house, "a").await;
    let (mut bob, _) = join(&house, "b").await;
    let off = switch(&house, false).await;
    assert_eq!(
        off["realtime"],
        json!({ "enabled": false, "rooms": 0, "sockets": 0 })
    );
    assert_eq!(ada.wait_for_close().await, Some(1001));
    assert_eq!(bob.wait_for_close().await, Some(1001));
    has_no_rooms(&house).await;
    switch(&house, true).await;
    let (mut again, _) = join(&house, "a").await;
    // Switching on what is on changes nothing.
    switch(&house, true).await;
    lives(&mut again).await;
}

#[tokio::test]
async fn realtime_is_switched_alone() {
    let house = house().await;
    for body in [
        json!({ "realtime": true, "note": "x" }),
        json!({ "realtime": true, "ddl": "CREATE TABLE t (a)" }),
    ] {
        let answer = house.send(Method::PATCH, "", &body).await;
        answer.problem(400, "invalid_request");
    }
}

#[tokio::test]
async fn a_deleted_backend_closes() {
    let house = house().await;
    let (mut socket, _) = join(&house, "a").await;
    house.delete().await.expect(204);
    assert_eq!(socket.wait_for_close().await, Some(1001));
    has_no_rooms(&house).await;
    house.create(GUESTS).await.expect(201);
    has_no_rooms(&house).await;
}

#[tokio::test]
async fn a_deleted_frontend_closes_its_own_sockets() {
    let house = house().await;
    house.publish("annex").await;
    let (mut ada, ada_id) = join(&house, "a").await;
    let (mut bob, _) = join_by(&house, "annex", "a").await;
    let path = format!("/{}/frontends/room", house.project);
    house.owner.delete(&house.server, &path).await.expect(204);
    assert_eq!(ada.wait_for_close().await, Some(1001));
    assert_eq!(
        bob.wait_for_envelope("svc:leave").await["data"]["client_id"],
        *ada_id
    );
    lives(&mut bob).await;
}

#[tokio::test]
async fn a_slug_that_another_page_takes_closes_too() {
    let house = house().await;
    let (mut ada, _) = join(&house, "a").await;
    let path = format!("/{}/frontends/room", house.project);
    house.owner.delete(&house.server, &path).await.expect(204);
    house.publish("room").await;
    assert_eq!(ada.wait_for_close().await, Some(1001));
    let (mut again, _) = join(&house, "a").await;
    lives(&mut again).await;
}

#[tokio::test]
async fn a_republished_frontend_keeps_its_sockets() {
    let house = house().await;
    let (mut ada, _) = join(&house, "a").await;
    let (mut bob, _) = join(&house, "a").await;
    let path = format!("/{}/frontends/room", house.project);
    let body = json!({ "content": "# Two" });
    let put = house
        .owner
        .send(&house.server, Method::PUT, &path, &body)
        .await;
    put.expect(200);
    ada.drain_envelopes().await;
    ada.send_envelope("on", json!(1)).await;
    bob.wait_for_envelope("on").await;
}

#[tokio::test]
async fn a_deleted_project_closes() {
    let house = house().await;
    let (mut socket, _) = join(&house, "a").await;
    house
        .owner
        .delete(&house.server, &format!("/{}", house.project))
        .await
        .expect(204);
    assert_eq!(socket.wait_for_close().await, Some(1001));
}

#[tokio::test]
async fn an_expired_project_closes() {
    let server = TestServer::start().await;
    let owner = crate::account::Owner::new(&server, "acme").await;
    let brief = json!({ "name": "Brief", "ttl_seconds": 60 });
    let project = owner.post(&server, "", &brief).await.expect(201).json();
    let project = crate::account::text(&project["id"]);
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
    let house = house_on(TestServer::builder().system_clock()).await;
    house.publish("annex").await;
    let (mut ada, _) = join(&house, "a").await;
    let (mut bob, _) = join_by(&house, "annex", "a").await;
    let disabled = house
        .server
        .command(&svc(), &["deployment", "disable", "room"])
        .await;
    assert!(disabled.success);
    assert_eq!(ada.wait_for_close().await, Some(1008));
    lives(&mut bob).await;
    let enabled = house
        .server
        .command(&svc(), &["deployment", "enable", "room"])
        .await;
    assert!(enabled.success);
    let opened = async || house.server.socket("/room/ws?room=a", &[]).await.ok();
    svc_tests::wait_until("the page to be enabled", opened).await;
}

#[tokio::test]
async fn a_stop_tells_its_sockets_first() {
    let house = house().await;
    let (mut ada, _) = join(&house, "a").await;
    let (bob, _) = join(&house, "a").await;
    let listening = tokio::spawn(async move { ada.wait_for_close().await });
    // One that does not answer the close does not hold the server up.
    let server = house.server;
    server.stop().await;
    assert_eq!(listening.await.unwrap(), Some(1001));
    drop(bob);
}

#[tokio::test]
async fn other_connections_are_served_while_sockets_are_open() {
    let house = house().await;
    let (mut ada, _) = join(&house, "a").await;
    for _ in 0..3 {
        house.server.get("/room").answer().await.expect(200);
    }
    lives(&mut ada).await;
}
