//! Errands: small writes of a server whose control database another machine writes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use svc::control::{ControlDatabase, ErrandSender, Error};
use svc::errands;
use svc_tests::{TestServer, wait_until};

use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::visitors::guest_book::GuestBook;

/// A machine that does no errand.
#[derive(Debug)]
struct FailingMachine(fn() -> Error);

impl ErrandSender for FailingMachine {
    fn send(&self, _: String) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { Err((self.0)()) })
    }
}

/// Another machine, which does the errands of a server in the rows that both read.
#[derive(Debug)]
struct OtherMachine {
    control: ControlDatabase,
    /// Kinds of errands that came.
    kinds: Mutex<BTreeSet<String>>,
}

impl ErrandSender for OtherMachine {
    fn send(&self, message: String) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move {
            let read: Value = serde_json::from_str(&message).unwrap();
            let kind = read["errand"].as_object().unwrap().keys().next().cloned();
            self.kinds.lock().unwrap().extend(kind);
            errands::perform_message(&self.control, &message).await
        })
    }
}

impl OtherMachine {
    /// Begins to do the errands of a server.
    fn of(server: &TestServer) -> Arc<Self> {
        let other = Arc::new(Self {
            control: ControlDatabase::open(server.data()).unwrap(),
            kinds: Mutex::default(),
        });
        let control = &server.server().app().control;
        control.set_errand_sender(Some(Arc::clone(&other) as _));
        other
    }

    /// Waits until errands of all these kinds came, and no others.
    async fn wait_for(&self, kinds: &[&str]) {
        let all = async || {
            let came = self.kinds.lock().unwrap().len();
            (came == kinds.len()).then_some(())
        };
        wait_until("the errands to be sent", all).await;
        let came: Vec<String> = self.kinds.lock().unwrap().iter().cloned().collect();
        assert_eq!(came, kinds);
    }
}

#[tokio::test]
async fn an_owners_write_has_its_entry_where_entries_are_written() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let other = OtherMachine::of(&fixture.server);
    fixture.server.advance(61);
    let insert = "INSERT INTO guests (name, email) VALUES ('Ada', 'ada@example.com')";
    fixture.query(insert, &json!({})).await.expect(200);
    let again = fixture.query(insert, &json!({})).await;
    again.problem(409, "constraint_violation");
    let kinds = ["audit_ahead", "audit_withdrawal", "key_use"];
    other.wait_for(&kinds).await;
    // What failed left no entry.
    let count = "SELECT count(*) FROM audit WHERE action = 'backend.query' AND principal <> ''";
    let entries: i64 = other
        .control
        .read_blocking(|c| c.query_row(count, [], |row| row.get(0)))
        .unwrap();
    assert_eq!(entries, 1);
}

#[tokio::test]
async fn a_visitor_is_seen_where_visitors_are_written() {
    let guest_book = GuestBook::with_dev_provider().await;
    let server = &guest_book.fixture.server;
    let mut ada = guest_book.browser();
    let form = "name=Ada&email=ada%40example.com";
    guest_book.sign_in(&mut ada, form, "").await;
    let other = OtherMachine::of(server);
    server.advance(3_601);
    let mine = json!({ "action": "mine" });
    guest_book.call(&mut ada, &mine).await.expect(200);
    other.wait_for(&["visitor_seen"]).await;
    let now = server.server().app().clock.now().0;
    let seen = async || {
        let read = "SELECT max(last_seen_at) FROM visitors";
        let last = other
            .control
            .read_blocking(|c| c.query_row(read, [], |row| row.get::<_, i64>(0)));
        (last.unwrap() == now).then_some(())
    };
    wait_until("the visit to be written", seen).await;
}

#[tokio::test]
async fn a_write_whose_errand_fails_is_answered_as_on_one_machine() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let insert = "INSERT INTO guests (name, email) VALUES ('Ada', 'ada@example.com')";
    type Failure = fn() -> Error;
    let answers: [(Failure, u16, &str, Option<&str>); 5] = [
        // No machine has control, or the one that has it went away.
        (|| Error::Elsewhere, 503, "capacity_reached", Some("1")),
        (|| Error::Unanswered, 503, "capacity_reached", Some("1")),
        (
            || Error::from_errand_failure(&Error::Closed.to_errand_failure()),
            503,
            "capacity_reached",
            Some("1"),
        ),
        (
            || Error::from_errand_failure(&Error::Full.to_errand_failure()),
            503,
            "capacity_reached",
            Some("60"),
        ),
        (|| Error::from_errand_failure("?"), 500, "internal", None),
    ];
    let control = &fixture.server.server().app().control;
    for (error, status, code, wait) in answers {
        control.set_errand_sender(Some(Arc::new(FailingMachine(error))));
        let refused = fixture.query(insert, &json!({})).await;
        refused.problem(status, code);
        assert_eq!(refused.header("retry-after"), wait, "{status}");
    }
    // Nothing was written.
    control.set_errand_sender(None);
    fixture.query(insert, &json!({})).await.expect(200);
}
