//! Sight of owners: counts by the hour and the day, and the log of the latest requests.

mod counts;
mod follow;
mod log;
mod places;
mod secrets;

use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::Owner;
use crate::project_fixture::{GUESTS, ProjectFixture};

/// Actions that the pages call.
const ACTIONS: [(&str, &str); 5] = [
    (
        "add",
        "INSERT INTO guests (name, email) VALUES (:name, :email) RETURNING id",
    ),
    ("all", "SELECT id, name FROM guests ORDER BY id"),
    ("named", "SELECT id FROM guests WHERE name = :name"),
    ("mine", "SELECT :svc_user_id AS me"),
    ("path", "SELECT json_extract('{}', :path) AS x"),
];

/// A fixture with guests, and its page `room`.
async fn start_fixture() -> ProjectFixture {
    start_on(TestServer::start().await).await
}

async fn start_on(server: TestServer) -> ProjectFixture {
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    fixture.define(&ACTIONS).await;
    fixture
}

/// Asks for the stats or the log of a project.
async fn ask(server: &TestServer, owner: &Owner, project: &str, below: &str) -> Answer {
    owner.get(server, &format!("/{project}/{below}")).await
}

impl ProjectFixture {
    /// Returns the stats, or the log.
    async fn seen(&self, below: &str) -> Value {
        let answer = ask(&self.server, &self.owner, &self.project, below).await;
        answer.expect(200).json()
    }

    /// Returns the sums of the only day on which something happened.
    async fn sums(&self) -> Value {
        let stats = self.seen("stats").await;
        let series = stats["series"].as_array().unwrap();
        let mut last = series.last().unwrap().clone();
        last.as_object_mut().unwrap().remove("at");
        for before in &series[..series.len() - 1] {
            assert_eq!(before["calls"], 0, "{stats}");
        }
        last
    }
}

/// Returns sums of which these are not zero.
fn sums(not_zero: &[(&str, u64)]) -> Value {
    let mut all = json!({
        "views": 0, "calls": 0, "errors": 0, "limited": 0, "messages": 0, "sign_ins": 0, "payments": 0,
    });
    for (name, count) in not_zero {
        all[name] = json!(count);
    }
    all
}

/// Members of each entry of a log, oldest first.
fn entries(log: &Value, members: &[&str]) -> Vec<Vec<Value>> {
    let all = log["entries"].as_array().unwrap();
    let values = |entry: &Value| members.iter().map(|name| entry[name].clone()).collect();
    all.iter().rev().map(values).collect()
}

#[tokio::test]
async fn only_who_may_read_the_project_sees_it() {
    let fixture = start_fixture().await;
    let stranger = Owner::new(&fixture.server, "strange").await;
    for below in ["stats", "log"] {
        let path = format!("/api/v1/projects/{}/{below}", fixture.project);
        let nobody = fixture.server.get(&path).answer().await;
        nobody.problem(401, "unauthorized");
        let foreign = ask(&fixture.server, &stranger, &fixture.project, below).await;
        foreign.problem(403, "forbidden");
        let none = ask(
            &fixture.server,
            &stranger,
            "01a1ff0b-0540-7000-8000-000000000000",
            below,
        );
        none.await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told_precisely() {
    let fixture = start_fixture().await;
    for (below, said) in [
        ("stats?step=week", "`step` must be `hour` or `day`"),
        ("stats?from=yesterday", "`from` must be a time"),
        ("stats?to=2026-13-01T00:00:00Z", "`to` must be a time"),
        (
            "stats?from=2026-11-21T00:00:00Z",
            "`from` must be before `to`",
        ),
        (
            "stats?from=2026-11-01T00:00:00Z&step=hour",
            "400 is the most",
        ),
        ("stats?since=1", "since"),
        ("log?limit=0", "`limit` must be from 1 to 500"),
        ("log?limit=501", "`limit` must be from 1 to 500"),
        ("log?before=1", "`before` is not valid"),
        ("log?kind=view", "`kind` must be one of call, query"),
        ("log?status=99", "`status` must be one status"),
        ("log?status=4xx", "status"),
        ("log?action=A%20B", "`action` must be the name"),
        ("log?errors=true", "errors"),
    ] {
        let answer = ask(&fixture.server, &fixture.owner, &fixture.project, below).await;
        let problem = answer.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{below}: {detail}");
    }
}
