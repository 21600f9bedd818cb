//! How many sockets and rooms there may be: refused before the upgrade, and given back.

use svc_tests::{ReadAnswer, TestServer, wait_until};

use super::{join, start_fixture_with};
use crate::project_fixture::ProjectFixture;

/// That one more is refused, with a problem that says when to come again.
async fn assert_room_full(fixture: &ProjectFixture, room: &str) {
    let answer = fixture
        .server
        .get(&format!("/room/ws?room={room}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .answer()
        .await;
    answer.problem(429, "rate_limited");
    assert_eq!(answer.header("retry-after"), Some("60"));
}

/// That there is room again, once sockets that have gone are counted as gone.
async fn wait_for_free_seat(fixture: &ProjectFixture, room: &str) {
    let path = format!("/room/ws?room={room}");
    let joined = async || fixture.server.socket(&path, &[]).await.ok();
    wait_until("a place to be free", joined).await;
}

#[tokio::test]
async fn a_client_has_so_many_sockets() {
    let fixture = start_fixture_with(TestServer::builder().service_limits()).await;
    let mut sockets = Vec::new();
    for n in 0..20 {
        sockets.push(join(&fixture, &format!("r{}", n % 3)).await.0);
    }
    assert_room_full(&fixture, "r0").await;
    assert_room_full(&fixture, "other").await;
    sockets.pop().unwrap().close().await;
    wait_for_free_seat(&fixture, "r0").await;
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_counted_apart() {
    let builder = TestServer::builder().limits(|limits| limits.sockets_per_ip = 1);
    let trusted = vec!["127.0.0.0/8".parse().unwrap()];
    let fixture =
        start_fixture_with(builder.settings(|settings| settings.trusted_proxies = trusted)).await;
    let path = "/room/ws?room=a";
    let mut open = Vec::new();
    for (client, expected) in [
        ("192.0.2.1", true),
        ("192.0.2.1", false),
        ("192.0.2.2", true),
        ("2001:db8:1:2::1", true),
        ("2001:db8:1:2::2", false),
        ("2001:db8:1:3::1", true),
    ] {
        let socket = fixture
            .server
            .socket(path, &[("x-forwarded-for", client)])
            .await;
        assert_eq!(socket.is_ok(), expected, "{client}");
        open.extend(socket.ok());
    }
    assert_eq!(open.len(), 4);
}

#[tokio::test]
async fn a_backend_has_so_many_sockets() {
    let fixture = start_fixture_with(TestServer::builder()).await;
    let mut sockets = Vec::new();
    for n in 0..100 {
        sockets.push(join(&fixture, &format!("r{}", n % 7)).await.0);
    }
    assert_room_full(&fixture, "r0").await;
    sockets.pop().unwrap().close().await;
    wait_for_free_seat(&fixture, "r0").await;
}

#[tokio::test]
async fn a_backend_has_so_many_rooms() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.rooms_per_backend = 3))
            .await;
    let (one, _) = join(&fixture, "one").await;
    let (_two, _) = join(&fixture, "two").await;
    let (_three, _) = join(&fixture, "three").await;
    assert_room_full(&fixture, "four").await;
    // A room that is there may be joined, and one that has ended makes room.
    join(&fixture, "three").await.0.close().await;
    one.close().await;
    wait_for_free_seat(&fixture, "four").await;
}

#[tokio::test]
async fn the_server_has_so_many_sockets() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.sockets_total = 2)).await;
    let (one, _) = join(&fixture, "one").await;
    let (_two, _) = join(&fixture, "two").await;
    assert_room_full(&fixture, "one").await;
    one.close().await;
    wait_for_free_seat(&fixture, "one").await;
}

#[tokio::test]
async fn none_at_all_is_a_quota_too() {
    for change in [
        (|limits| limits.sockets_total = 0) as fn(&mut svc::config::Limits),
        |limits| limits.sockets_per_backend = 0,
        |limits| limits.sockets_per_ip = 0,
        |limits| limits.rooms_per_backend = 0,
    ] {
        let fixture = start_fixture_with(TestServer::builder().limits(change)).await;
        assert_room_full(&fixture, "one").await;
    }
}
