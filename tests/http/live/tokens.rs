//! Tokens that subscriptions draw from the buckets of calls, and the share of the quotas that connections take.

use serde_json::json;
use svc_tests::{ReadAnswer, TestServer};

use super::{
    assert_still_served, next_error, open, start_fixture_with, subscribe, subscribe_and_read_first,
};

#[tokio::test]
async fn a_subscribe_draws_the_clients_token_of_a_call() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.op_burst = 3)).await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    subscribe_and_read_first(&mut socket, "b", "total", &json!({})).await;
    fixture.call_ok("total", &json!({})).await;
    socket.send(subscribe("c", "total", &json!({}))).await;
    let told = next_error(&mut socket, Some("c"), "rate_limited").await;
    assert_eq!(told["problem"]["status"], 429);
    fixture
        .call_action("total", &json!({}))
        .await
        .problem(429, "rate_limited");
    let stream = fixture
        .server
        .get("/room/api/live?action=total")
        .header("accept", "text/event-stream");
    let refused = stream.answer().await;
    refused.problem(429, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("60"));
    // Those that are served go on, whatever the buckets hold.
    fixture
        .query(
            "INSERT INTO votes (poll, choice) VALUES (1, 'x')",
            &json!({}),
        )
        .await;
    fixture.server.advance(1);
    assert_still_served(&mut socket).await;
}

#[tokio::test]
async fn joining_a_query_that_is_served_draws_no_token_of_the_page() {
    let fixture =
        start_fixture_with(TestServer::builder().limits(|limits| limits.op_deployment_burst = 2))
            .await;
    let mut socket = open(&fixture).await;
    subscribe_and_read_first(&mut socket, "a", "total", &json!({})).await;
    for n in 0..5 {
        subscribe_and_read_first(&mut socket, &format!("more{n}"), "total", &json!({})).await;
    }
    subscribe_and_read_first(&mut socket, "b", "all_keys", &json!({})).await;
    socket.send(subscribe("c", "polls", &json!({}))).await;
    next_error(&mut socket, Some("c"), "rate_limited").await;
    subscribe_and_read_first(&mut socket, "d", "all_keys", &json!({})).await;
    // One that is wrong joins nothing.
    socket.send(subscribe("e", "nothing", &json!({}))).await;
    next_error(&mut socket, Some("e"), "rate_limited").await;
}

#[tokio::test]
async fn sockets_streams_and_rooms_share_the_quotas() {
    let few = |limits: &mut svc::config::Limits| {
        limits.sockets_per_backend = 3;
    };
    let fixture = start_fixture_with(TestServer::builder().limits(few)).await;
    fixture
        .send(http::Method::PATCH, "", &json!({ "realtime": true }))
        .await
        .expect(200);
    let socket = open(&fixture).await;
    let room = fixture.server.socket("/room/ws?room=a", &[]).await.unwrap();
    let asking = || {
        fixture
            .server
            .get("/room/api/live?action=total")
            .header("accept", "text/event-stream")
    };
    let stream = asking().send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(
        fixture
            .server
            .socket("/room/api/live", &[])
            .await
            .unwrap_err(),
        429
    );
    assert_eq!(
        fixture
            .server
            .socket("/room/ws?room=a", &[])
            .await
            .unwrap_err(),
        429
    );
    asking().answer().await.problem(429, "rate_limited");
    // The detail counts those of rooms.
    assert_eq!(
        fixture.detail().await["realtime"],
        json!({ "enabled": true, "rooms": 1, "sockets": 1 })
    );
    drop(stream);
    let opened = async || fixture.server.socket("/room/api/live", &[]).await.ok();
    let again = svc_tests::wait_until("the stream's place", opened).await;
    drop((socket, room, again));
}
