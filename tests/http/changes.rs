//! Changes that another machine has made: caches here follow them once they are delivered, and in no other way.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use svc::control::{ControlChange, ControlDatabase, Error};
use svc::{deployments, visitors};
use svc_tests::{ReadAnswer, TestServer};

use crate::live;
use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};
use crate::visitors::guest_book::GuestBook;

/// Another machine: it writes the same rows, and none of this server's caches hears of that.
#[derive(Debug)]
struct OtherMachine {
    control: ControlDatabase,
    noted: Arc<Mutex<Vec<ControlChange>>>,
}

impl OtherMachine {
    fn beside(server: &TestServer) -> Self {
        let control = ControlDatabase::open(server.data()).unwrap();
        let noted = Arc::<Mutex<Vec<ControlChange>>>::default();
        let followed = Arc::clone(&noted);
        control.on_change(move |change| followed.lock().unwrap().push(change.clone()));
        Self { control, noted }
    }

    /// Delivers what its writes have noted, as it travels.
    fn deliver_to(&self, server: &TestServer) {
        let noted = std::mem::take(&mut *self.noted.lock().unwrap());
        assert!(!noted.is_empty());
        let sent = serde_json::to_string(&noted).unwrap();
        let received: Vec<ControlChange> = serde_json::from_str(&sent).unwrap();
        server.server().app().control.deliver_changes(&received);
    }
}

#[tokio::test]
async fn actions_and_live_queries_follow_another_machine() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let sql = "SELECT count(*) + 1 AS n FROM guests";
    fixture.define(&[("count", sql)]).await;
    let other = OtherMachine::beside(&fixture.server);
    let (none, rows) = (json!({}), |n: u8| json!([{ "n": n }]));
    let mut socket = live::open(&fixture).await;
    let first = live::subscribe_and_read_first(&mut socket, "x", "count", &none).await;
    assert_eq!(first["result"]["rows"], rows(1));
    let write = other.control.write(|tx| {
        tx.execute("UPDATE actions SET sql = replace(sql, '+ 1', '+ 2')", [])?;
        let backend = tx.query_row("SELECT id FROM backends", [], |row| row.get(0))?;
        tx.note(ControlChange::ActionsDefined(backend));
        Ok::<_, Error>(())
    });
    write.await.unwrap();
    assert_eq!(fixture.call_ok("count", &none).await["rows"], rows(1));
    other.deliver_to(&fixture.server);
    assert_eq!(fixture.call_ok("count", &none).await["rows"], rows(2));
    assert_eq!(live::next_rows(&mut socket, "x", 2).await, rows(2));
}

#[tokio::test]
async fn pages_follow_another_machine() {
    let server = TestServer::start().await;
    let body = json!({ "content": "words", "name": "page" });
    server.publish_slug(&body).await;
    let status = async || server.get("/page").answer().await.status;
    assert_eq!(status().await, 200);
    let other = OtherMachine::beside(&server);
    let app = server.server().app();
    let served = Some(Arc::clone(&app.config));
    let disable =
        deployments::operators::set_disabled(&other.control, &app.clock, "page", true, served);
    assert!(disable.await.unwrap());
    assert_eq!(status().await, 200);
    other.deliver_to(&server);
    assert_eq!(status().await, 403);
}

#[tokio::test]
async fn sessions_follow_another_machine() {
    let guest_book = GuestBook::with_dev_provider().await;
    let server = &guest_book.fixture.server;
    let mut ada = guest_book.browser();
    let form = "name=Ada&email=ada%40example.com";
    guest_book.sign_in(&mut ada, form, "").await;
    let id = text(&guest_book.user(&mut ada).await["id"]);
    let other = OtherMachine::beside(server);
    let project = guest_book.fixture.project.parse().unwrap();
    let now = server.server().app().clock.now();
    let forget = visitors::operators::forget(&other.control, project, id, now);
    assert!(forget.await.unwrap());
    assert_ne!(guest_book.user(&mut ada).await, Value::Null);
    other.deliver_to(server);
    assert_eq!(guest_book.user(&mut ada).await, Value::Null);
}
