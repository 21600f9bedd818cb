//! A backup of everything that people, plans and visitors leave: row for row what was there.

use std::collections::BTreeMap;
use std::path::Path;

use http::Method;
use rusqlite::Connection;
use rusqlite::types::Value as Stored;
use serde_json::json;
use svc_tests::TestServer;

use super::fake_billing::{FakeBilling, send_webhook};
use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::text;
use crate::svc;

/// Tables that have a row at least.
const FILLED_TABLES: [&str; 9] = [
    "audit",
    "ended_workspaces",
    "keys",
    "memberships",
    "payment_events",
    "subscriptions",
    "users",
    "visitor_sessions",
    "visitors",
];

/// All rows of all tables.
fn all_rows(data: &Path) -> BTreeMap<String, Vec<Vec<Stored>>> {
    let control = Connection::open(data.join("control.db")).unwrap();
    let mut names = control
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let of_table = |name: String| {
        let mut all = control.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = all.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        let mut rows: Vec<Vec<Stored>> = all
            .query_map([], row)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        (name, rows)
    };
    names.map(|name| of_table(name.unwrap())).collect()
}

#[tokio::test]
async fn everything_of_people_comes_back_row_for_row() {
    let till = FakeBilling::start().await;
    let settings = till.settings();
    let builder = TestServer::builder().settings(|all| {
        all.stripe = Some(settings);
        all.dev = true;
    });
    let fixture = MembersFixture::with_settings(builder, |_| ()).await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let acme = alice.workspace(&fixture, "acme").await;
    alice.workspace(&fixture, "gone").await;
    alice
        .delete(&fixture, &format!("{WORKSPACES_PATH}/gone"))
        .await
        .expect(204);
    alice.add_member(&fixture, &acme, &bob, "viewer").await;
    let key = json!({ "role": "viewer", "expires_in": 60, "note": "for the agent" });
    let keys = format!("{WORKSPACES_PATH}/acme/keys");
    alice
        .send(&fixture, Method::POST, &keys, key)
        .await
        .expect(201);
    let paid = json!({
        "id": "cs_1", "mode": "subscription", "payment_status": "paid", "subscription": "sub_1", "customer": "cus_1",
        "metadata": { "svc_workspace": acme },
    });
    send_webhook(
        &fixture.server,
        "checkout.session.completed",
        "evt_1",
        1,
        paid,
    )
    .await
    .expect(200);
    let project = alice.owner.project(&fixture.server, "House").await;
    let backend = format!("/{project}/backend");
    let made = json!({ "ddl": "CREATE TABLE t (n)" });
    alice
        .owner
        .post(&fixture.server, &backend, &made)
        .await
        .expect(201);
    let agents = json!({ "agents": true });
    alice
        .owner
        .send(&fixture.server, Method::PATCH, &backend, &agents)
        .await
        .expect(200);
    let page = alice
        .owner
        .frontend(&fixture.server, &project, "room")
        .await;
    let mut browser = svc_tests::browser::Browser::new(fixture.server.address());
    let login = format!("{}/auth/login", text(&page["url"]));
    let (at, _) = browser.open(&login).await;
    let form = "name=Ada&email=ada%40example.com";
    let sent = browser.submit(&at, form).await.expect(303);
    browser.follow(&at, sent).await.1.expect(200);

    let data = fixture.server.stop().await;
    let before = all_rows(data.path());
    for table in FILLED_TABLES {
        assert!(!before[table].is_empty(), "{table}");
    }
    let vault = tempfile::tempdir().unwrap();
    let backup = vault.path().join("backup");
    let backup = backup.to_str().unwrap();
    let made = svc().run(data.path(), &["backup", backup]).await;
    assert!(made.success, "{made:?}");
    let restored = vault.path().join("restored");
    let put_back = svc().run(&restored, &["restore", backup]).await;
    assert!(put_back.success, "{put_back:?}");
    let after = all_rows(&restored);
    for (table, rows) in &before {
        assert_eq!(after.get(table), Some(rows), "{table}");
    }
    let checked = svc().run(&restored, &["check", "--json"]).await.json();
    assert_eq!(checked["errors"], json!([]));
}
