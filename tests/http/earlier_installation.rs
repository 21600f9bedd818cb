//! A data directory of an earlier version, as that version left it: what there is of it is there, where it belongs now.
//!
//! The files in `earlier_installation/` were written by a server of schema 4: a project with a page, a backend and three guests who came a
//! second apart, and five views.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};
use tempfile::TempDir;

use crate::crashes::{fault_group, fault_points};
use crate::owner::{Owner, text};
use crate::project_fixture::ProjectFixture;
use crate::svc;

/// Groups of the fault points that are tested here.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["takeover"];
const PROJECT: &str = "01a202a7-9826-78ef-bbf5-fb43de89aaab";
const BACKEND: &str = "01a202a7-98a3-7b81-af02-450466d1263e";

fn create_database(path: &Path, sql: &str) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch(sql).unwrap();
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_folder(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Puts the old installation in the place of what is in a data directory.
fn install_earlier_data(data: &Path) {
    for file in ["control.db", "counters.db"] {
        // A directory that nobody has used has none.
        let _ = std::fs::remove_file(data.join(file));
    }
    create_database(
        &data.join("control.db"),
        include_str!("earlier_installation/control.sql"),
    );
    let backend = data.join("backends").join(BACKEND);
    std::fs::create_dir_all(&backend).unwrap();
    create_database(
        &backend.join("default.db"),
        include_str!("earlier_installation/default.sql"),
    );
    let before = Path::new(env!("CARGO_MANIFEST_DIR")).join("http/earlier_installation");
    let history = "0000000001.history";
    std::fs::copy(before.join(history), backend.join(history)).unwrap();
    copy_folder(&before.join("content"), &data.join("content"));
}

/// The old installation under a server of today, three days later than every test's day.
async fn start_on_earlier_data() -> ProjectFixture {
    let server = TestServer::start().await;
    server.advance(3 * 24 * 3600);
    let server = server
        .restart_after_change(async |data| install_earlier_data(data))
        .await;
    let made = server.command(&svc(), &["key", "create", "before"]).await;
    let credential = made.stdout.trim().to_owned();
    ProjectFixture {
        server,
        owner: Owner::with_credential(&credential),
        project: PROJECT.to_owned(),
    }
}

impl ProjectFixture {
    async fn project(&self) -> Value {
        let path = format!("/{}", self.project);
        self.owner.get(&self.server, &path).await.expect(200).json()
    }

    fn count_rows_of(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let control = &self.server.server().app().control;
        let count = control.read_blocking(|c| c.query_row(&sql, [], |row| row.get(0)));
        count.unwrap()
    }
}

#[tokio::test]
async fn everything_is_there_and_views_are_counted_on() {
    let mut fixture = start_on_earlier_data().await;
    let project = fixture.project().await;
    assert_eq!(project["visits"], json!({ "total": 5 }));
    let member = &project["members"][0];
    assert_eq!(
        (&member["slug"], &member["visits"]),
        (&json!("room"), &json!(5))
    );
    let page = fixture.server.get("/room").answer().await.expect(200);
    assert!(page.text().contains("Hello before"));
    fixture.server = fixture.server.restart().await;
    assert_eq!(fixture.server.visits("room").await, 6);
    assert_eq!(fixture.project().await["visits"], json!({ "total": 6 }));
    let path = format!("/{PROJECT}/frontends/room");
    for (below, list) in [("revisions", "revisions"), ("releases", "releases")] {
        let path = format!("{path}/{below}");
        let listed = fixture
            .owner
            .get(&fixture.server, &path)
            .await
            .expect(200)
            .json();
        assert_eq!(listed[list].as_array().unwrap().len(), 1, "{below}");
    }
    let detail = fixture.detail().await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
    assert_eq!(detail["actions"][0]["name"], "add");
    assert_eq!(fixture.count("guests").await, 3);
    // Numbers that were given are not given again.
    let sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'revisions'";
    let control = &fixture.server.server().app().control;
    let last = control.read_blocking(|c| c.query_row(sequence, [], |row| row.get::<_, i64>(0)));
    assert_eq!(last.unwrap(), 1);
    // Deleted rows take along the rows that once referred to them.
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    fixture.delete().await.expect(204);
    for table in [
        "deployments",
        "revisions",
        "releases",
        "backends",
        "ledger",
        "actions",
    ] {
        assert_eq!(fixture.count_rows_of(table), 0, "{table}");
    }
    fixture
        .server
        .server()
        .app()
        .serving
        .forget_visits()
        .await
        .unwrap();
    assert_eq!(count_control_statements(&fixture.server), 0);
}

fn count_control_statements(server: &TestServer) -> usize {
    server
        .server()
        .app()
        .control
        .counters()
        .counted_deployments()
        .len()
}

#[tokio::test]
async fn its_history_begins_anew_and_its_moments_can_be_restored() {
    let fixture = start_on_earlier_data().await;
    let path = format!("/{PROJECT}/backend/history");
    let listed = async || {
        let history = fixture
            .owner
            .get(&fixture.server, &path)
            .await
            .expect(200)
            .json();
        let moments = history["moments"].as_array().unwrap().clone();
        moments
            .iter()
            .map(|moment| text(&moment["at"]))
            .collect::<Vec<_>>()
    };
    let before = listed().await;
    assert!(before.len() > 3, "{before:?}");
    fixture.server.advance(1);
    fixture.call_ok("add", &json!({ "name": "Mary" })).await;
    assert_eq!(listed().await[1..], before);
    // The newest is where it began anew, with what was there.
    let (two, at) = (2, &before[2]);
    let body = json!({ "at": at });
    let restored = fixture.send(Method::POST, "/restore", &body).await;
    let restored = restored.expect(200).json();
    assert_eq!(fixture.count("guests").await, two, "{before:?}");
    let undo = json!({ "at": restored["previous"] });
    fixture
        .send(Method::POST, "/restore", &undo)
        .await
        .expect(200);
    assert_eq!(fixture.count("guests").await, 4);
    let checked = fixture.server.command(&svc(), &["check", "--json"]).await;
    let found: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(found["errors"], json!([]), "{found}");
    let notes = found["notes"].to_string();
    assert!(
        notes.contains(BACKEND) && notes.contains("earlier format"),
        "{notes}"
    );
}

#[tokio::test]
async fn whatever_the_point_of_its_death_it_is_taken_over_once() {
    let points = fault_points().into_iter();
    let points: Vec<_> = points
        .filter(|p| FAULT_GROUPS.contains(&fault_group(p)))
        .collect();
    assert!(points.len() >= 3, "{points:?}");
    for point in points {
        let data = TempDir::new().unwrap();
        install_earlier_data(data.path());
        let command = ["project", "list", "--json"];
        let died = svc().run_to_fault(&point, data.path(), &command).await;
        assert!(!died.success && died.stdout.is_empty(), "{point}: {died:?}");
        for _ in 0..2 {
            let listed = svc().run(data.path(), &command).await.json();
            assert_eq!(listed["projects"][0]["visits"], 5, "{point}");
        }
        let found = svc().run(data.path(), &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]), "{point}");
    }
}
