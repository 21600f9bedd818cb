//! Counts are exact: of whatever comes, over a restart, and in the hour in which it came.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, TestServer, wait_until};

use super::{entries, start_fixture, start_on, sums};
use crate::payments::PaymentsFixture;
use crate::payments::fake_stripe::{checkout, event};
use crate::rooms;
use crate::visitors::guest_book::GuestBook;

#[tokio::test]
async fn mixed_requests_are_counted_exactly() {
    let fixture = start_fixture().await;
    fixture.publish("other").await;
    for (slug, views) in [("room", 3), ("other", 2)] {
        for _ in 0..views {
            fixture
                .server
                .get(&format!("/{slug}"))
                .answer()
                .await
                .expect(200);
        }
    }
    fixture.server.head("/room").answer().await.expect(200);
    let add = |name: &str, email: &str| json!({ "name": name, "email": email });
    fixture.call_ok("add", &add("Ann", "a@x")).await;
    fixture.call_ok("add", &add("Bob", "b@x")).await;
    let again = fixture.call_action("add", &add("Ann", "a@x")).await;
    again.problem(409, "constraint_violation");
    fixture.call_ok("all", &json!({})).await;
    fixture
        .call_action("none", &json!({}))
        .await
        .problem(404, "not_found");
    fixture
        .call_action("mine", &json!({}))
        .await
        .problem(401, "identity_required");
    // A batch counts its calls; one that fails has one error.
    let ops = json!({ "ops": [{ "action": "all" }, { "action": "all" }, { "action": "named", "params": { "name": "Bob" } }] });
    fixture.call("room", &ops).await.expect(200);
    let ops =
        json!({ "ops": [{ "action": "all" }, { "action": "add", "params": add("Cid", "b@x") }] });
    fixture
        .call("room", &ops)
        .await
        .problem(409, "constraint_violation");
    let expected = sums(&[("views", 5), ("calls", 11), ("errors", 4)]);
    assert_eq!(fixture.sums().await, expected);
    let stats = fixture.seen("stats").await;
    let pages = json!([{ "slug": "room", "views": 3 }, { "slug": "other", "views": 2 }]);
    assert_eq!(stats["pages"], pages);
    let counted = |name: &str| {
        let all = stats["actions"].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name).unwrap();
        assert!(one["p50_ms"].as_f64() <= one["p99_ms"].as_f64(), "{one}");
        assert!(one["p50_ms"].as_f64() > Some(0.0), "{one}");
        ["calls", "errors", "rows"].map(|name| one[name].as_u64().unwrap())
    };
    // Twice two rows, and what a batch that failed has read is not answered.
    assert_eq!(counted("all"), [4, 0, 6]);
    assert_eq!(counted("add"), [4, 2, 2]);
    assert_eq!(counted("named"), [1, 0, 1]);
    assert_eq!(counted("mine"), [1, 1, 0]);
    assert_eq!(stats["actions"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn counts_survive_a_restart_and_stand_in_their_hours() {
    let mut fixture = start_fixture().await;
    // Noon.
    for hour in 0..3 {
        for _ in 0..=hour {
            fixture.call_ok("all", &json!({})).await;
            fixture.server.get("/room").answer().await.expect(200);
        }
        fixture.server.advance(3600);
        if hour == 1 {
            fixture.server = fixture.server.restart().await;
        }
    }
    let path = "stats?step=hour&from=2026-11-20T11:00:00Z";
    for _ in 0..2 {
        let stats = fixture.seen(path).await;
        assert_eq!(stats["from"], "2026-11-20T11:00:00.000Z");
        assert_eq!(stats["to"], "2026-11-20T15:00:00.000Z");
        assert_eq!(stats["step"], "hour");
        let series = stats["series"].as_array().unwrap();
        let seen: Vec<_> = series
            .iter()
            .map(|one| {
                (
                    one["at"].as_str().unwrap(),
                    one["calls"].as_u64(),
                    one["views"].as_u64(),
                )
            })
            .collect();
        let point = |at, count| (at, Some(count), Some(count));
        assert_eq!(
            seen,
            [
                point("2026-11-20T11:00:00.000Z", 0),
                point("2026-11-20T12:00:00.000Z", 1),
                point("2026-11-20T13:00:00.000Z", 2),
                point("2026-11-20T14:00:00.000Z", 3),
            ]
        );
        assert_eq!(stats["actions"][0]["calls"], 6);
        fixture.server = fixture.server.restart().await;
    }
    assert_eq!(fixture.sums().await, sums(&[("views", 6), ("calls", 6)]));
    // A day later they are yesterday's, and after 90 days they are gone.
    fixture.server.advance(86_400);
    let stats = fixture.seen("stats").await;
    let series = stats["series"].as_array().unwrap();
    assert_eq!(
        (&series[5]["calls"], &series[6]["calls"]),
        (&json!(6), &json!(0))
    );
    fixture.server.advance(90 * 86_400);
    let app = fixture.server.server().app();
    app.activity.forget_old(false).await.unwrap();
    let stats = fixture
        .seen("stats?from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z")
        .await;
    assert_eq!(stats["series"][0]["calls"], 0, "{stats}");
}

#[tokio::test]
async fn what_a_limit_refuses_is_counted_apart() {
    let server = TestServer::builder()
        .limits(|limits| (limits.op_burst, limits.op_per_minute) = (3, 1))
        .start()
        .await;
    let fixture = start_on(server).await;
    for status in [200, 200, 200, 429, 429] {
        fixture.call_action("all", &json!({})).await.expect(status);
    }
    assert_eq!(fixture.sums().await, sums(&[("calls", 3), ("limited", 2)]));
    let log = fixture.seen("log?status=429").await;
    let seen = entries(&log, &["kind", "code", "slug"]);
    assert_eq!(
        seen,
        [
            ["call", "rate_limited", "room"],
            ["call", "rate_limited", "room"]
        ]
    );
}

#[tokio::test]
async fn messages_and_live_queries_are_counted() {
    let fixture = rooms::start_fixture_with(TestServer::builder()).await;
    fixture.define(&super::ACTIONS).await;
    let (mut ann, _) = rooms::join(&fixture, "hall").await;
    let (mut bob, _) = rooms::join(&fixture, "hall").await;
    for n in 0..3 {
        ann.send_envelope("say", json!(n)).await;
        assert_eq!(bob.wait_for_envelope("say").await["data"], n);
    }
    bob.send("{}").await;
    bob.wait_for_envelope("svc:error").await;
    let mut live = fixture.server.socket("/room/api/live", &[]).await.unwrap();
    for (id, action) in [("a", "all"), ("b", "all"), ("c", "add")] {
        let frame = json!({ "v": 1, "type": "subscribe", "id": id, "action": action });
        live.send(frame.to_string()).await;
        live.envelope().await;
    }
    let path = "/room/api/live?action=all";
    let stream = fixture
        .server
        .get(path)
        .header("accept", "text/event-stream");
    assert_eq!(stream.send().await.unwrap().status(), 200);
    let expected = sums(&[("messages", 3), ("calls", 4), ("errors", 1)]);
    let counted = async || (fixture.sums().await == expected).then_some(());
    wait_until("all of it to be counted", counted).await;
    let log = fixture.seen("log").await;
    let seen = entries(&log, &["kind", "status", "action", "code"]);
    let none = json!(null);
    assert_eq!(
        seen[..2],
        [
            [json!("room"), json!(101), none.clone(), none.clone()],
            [json!("room"), json!(101), none.clone(), none.clone()]
        ]
    );
    let mut live: Vec<_> = seen[2..].to_vec();
    live.sort_by_key(|entry| entry[1].as_u64());
    let good = [json!("live"), json!(200), json!("all"), none];
    let bad = [
        json!("live"),
        json!(400),
        json!("add"),
        json!("invalid_request"),
    ];
    assert_eq!(live, [good.clone(), good.clone(), good, bad]);
}

#[tokio::test]
async fn sign_ins_are_counted_when_they_are_complete() {
    let book = GuestBook::with_dev_provider().await;
    let mut browser = book.browser();
    book.sign_in(&mut browser, "name=Ann&email=ann%40example.com", "")
        .await;
    let user = book.user(&mut browser).await;
    let refused = browser.get(&book.url("/auth/complete?ticket=x")).await;
    refused.expect(302);
    let sign = json!({ "action": "sign", "params": { "words": "hi" } });
    book.call(&mut browser, &sign).await.expect(200);
    let fixture = &book.fixture;
    let expected = sums(&[("sign_ins", 1), ("errors", 1), ("calls", 1)]);
    assert_eq!(fixture.sums().await["sign_ins"], expected["sign_ins"]);
    let log = fixture.seen("log").await;
    let seen = entries(&log, &["kind", "status", "code", "user_id"]);
    let (id, none) = (user["id"].clone(), json!(null));
    let failed = [
        json!("sign_in"),
        json!(302),
        json!("ticket_invalid"),
        none.clone(),
    ];
    let signed_in = [json!("sign_in"), json!(302), none.clone(), id.clone()];
    assert_eq!(
        seen,
        [signed_in, failed, [json!("call"), json!(200), none, id]]
    );
}

#[tokio::test]
async fn payments_are_counted_once_however_often_they_are_told() {
    let shop = PaymentsFixture::start().await;
    let price = shop.add_price(json!({})).await;
    let begun = shop.begin_checkout(&price).await;
    let session = shop.send_request(&json!({ "price": "none" }), "").await;
    session.expect(404);
    // The provider's events name the session three times.
    let mut object = checkout(&begun.checkout, "paid");
    object["client_reference_id"] = json!(begun.session);
    object["metadata"]["svc_session"] = json!(begun.session);
    let paid = event("evt_1", "checkout.session.completed", 1, &object);
    for _ in 0..2 {
        shop.send_accepted_event(&paid).await;
    }
    let of = |below: &str| format!("/{}/{below}", shop.project);
    let stats = shop
        .owner
        .get(&shop.server, &of("stats"))
        .await
        .expect(200)
        .json();
    let today = &stats["series"][6];
    assert_eq!(
        (&today["payments"], &today["errors"]),
        (&json!(1), &json!(1)),
        "{today}"
    );
    let log = shop
        .owner
        .get(&shop.server, &of("log?kind=payment"))
        .await
        .expect(200)
        .json();
    let seen = entries(&log, &["status", "code", "slug"]);
    let none = json!(null);
    assert_eq!(
        seen,
        [
            [json!(200), none, json!("shop")],
            [json!(404), json!("not_found"), json!("shop")]
        ]
    );
}

#[tokio::test]
async fn a_project_takes_its_counts_along() {
    let fixture = start_fixture().await;
    fixture.call_ok("all", &json!({})).await;
    let app = fixture.server.server().app().clone();
    app.activity.flush().await.unwrap();
    let rows = || {
        let file = rusqlite::Connection::open(fixture.server.data().join("counters.db")).unwrap();
        let count = "SELECT count(*) FROM project_hours";
        file.query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(rows(), 1);
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .send(&fixture.server, Method::DELETE, &path, &json!({}))
        .await
        .expect(204);
    let gone = async || (rows() == 0).then_some(());
    wait_until("the counts to go", gone).await;
}
