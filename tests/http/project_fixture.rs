//! A fixture: a server with one owner's project with its backend, and the page `room` that visitors call it through.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

use crate::owner::{Owner, text};

/// A table that most houses have.
pub(crate) const GUESTS: &str =
    "CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE);";

/// A server with one project of one owner.
#[derive(Debug)]
pub(crate) struct ProjectFixture {
    pub(crate) server: TestServer,
    pub(crate) owner: Owner,
    pub(crate) project: String,
}

impl ProjectFixture {
    /// A project without a backend and without pages.
    pub(crate) async fn without_backend(server: TestServer) -> Self {
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "House").await;
        Self {
            server,
            owner,
            project,
        }
    }

    /// A project with a backend, and its page `room`.
    pub(crate) async fn new(ddl: &str) -> Self {
        Self::on_server(TestServer::start().await, ddl).await
    }

    /// Creates a fixture on a given server.
    pub(crate) async fn on_server(server: TestServer, ddl: &str) -> Self {
        let fixture = Self::without_backend(server).await;
        fixture.create(ddl).await.expect(201);
        fixture.publish("room").await;
        fixture
    }

    /// Publishes a page.
    pub(crate) async fn publish(&self, slug: &str) {
        self.owner.frontend(&self.server, &self.project, slug).await;
    }

    /// Sends a document to the project's backend.
    pub(crate) async fn send(&self, method: Method, below: &str, body: &Value) -> Answer {
        let path = format!("/{}/backend{below}", self.project);
        self.owner.send(&self.server, method, &path, body).await
    }

    /// Asks for a backend.
    pub(crate) async fn create(&self, ddl: &str) -> Answer {
        self.send(Method::POST, "", &json!({ "ddl": ddl })).await
    }

    /// Asks for a migration.
    pub(crate) async fn migrate(&self, ddl: &str) -> Answer {
        self.send(Method::PATCH, "", &json!({ "ddl": ddl })).await
    }

    /// Takes the backend away.
    pub(crate) async fn delete(&self) -> Answer {
        let path = format!("/{}/backend", self.project);
        self.owner.delete(&self.server, &path).await
    }

    /// Asks for the detail.
    pub(crate) async fn get(&self) -> Answer {
        let path = format!("/{}/backend", self.project);
        self.owner.get(&self.server, &path).await
    }

    /// The detail.
    pub(crate) async fn detail(&self) -> Value {
        self.get().await.expect(200).json()
    }

    /// Sends a batch of actions.
    pub(crate) async fn put(&self, actions: &Value) -> Answer {
        self.send(Method::PUT, "/actions", &json!({ "actions": actions }))
            .await
    }

    /// Defines actions, each a name and its SQL.
    pub(crate) async fn define(&self, actions: &[(&str, &str)]) {
        let batch: Vec<_> = actions
            .iter()
            .map(|(name, sql)| json!({ "name": name, "sql": sql }))
            .collect();
        self.put(&json!(batch)).await.expect(200);
    }

    /// Sends a visitor's call to a page of the fixture.
    pub(crate) async fn call(&self, slug: &str, body: &Value) -> Answer {
        let path = format!("/{slug}/api/op");
        self.server.json(&path, body).answer().await
    }

    /// Calls an action, as a visitor of `room`.
    pub(crate) async fn call_action(&self, action: &str, params: &Value) -> Answer {
        self.call("room", &json!({ "action": action, "params": params }))
            .await
    }

    /// Calls an action that succeeds; returns its result.
    pub(crate) async fn call_ok(&self, action: &str, params: &Value) -> Value {
        self.call_action(action, params).await.expect(200).json()
    }

    /// Sends a statement of the owner's.
    pub(crate) async fn query(&self, sql: &str, params: &Value) -> Answer {
        let body = json!({ "sql": sql, "params": params });
        self.owner
            .request(&self.server, Method::POST, "/room/api/query")
            .json(&body)
            .answer()
            .await
    }

    /// The rows of a statement of the owner's.
    pub(crate) async fn rows(&self, sql: &str) -> Value {
        self.query(sql, &json!({})).await.expect(200).json()["rows"].take()
    }

    /// How many rows a table has.
    pub(crate) async fn count(&self, table: &str) -> u64 {
        let rows = self
            .rows(&format!("SELECT count(*) AS n FROM {table}"))
            .await;
        rows[0]["n"].as_u64().unwrap()
    }
}

/// SQL with as many spaces after it as make it this long.
pub(crate) fn padded(sql: &str, bytes: usize) -> String {
    let padded = sql.to_owned() + &" ".repeat(bytes - sql.len());
    assert_eq!(padded.len(), bytes);
    padded
}

/// That SQL was refused: a reason, a statement, and a place whose line, column and offset are one place in it.
#[track_caller]
pub(crate) fn assert_sql_refused(answer: &Answer, code: &str, sql: &str) -> Value {
    let problem = answer.problem(400, code);
    assert!(!text(&problem["reason"]).is_empty(), "{sql}: {problem}");
    let statement = problem["statement"].as_u64();
    assert!(statement >= Some(1), "{sql}: {problem}");
    let place = &problem["position"];
    let offset = usize::try_from(place["offset"].as_u64().unwrap()).unwrap();
    let before = sql.get(..offset);
    let before = before.unwrap_or_else(|| panic!("{sql}: no such place: {problem}"));
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    let expected = json!({ "line": line, "column": column, "offset": offset });
    assert_eq!(*place, expected, "{sql}: {problem}");
    problem
}

/// The names in a list of documents, sorted.
#[track_caller]
pub(crate) fn names(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let mut names: Vec<_> = list.iter().map(|item| text(&item["name"])).collect();
    names.sort();
    names
}

/// The document of a list that has this name.
#[track_caller]
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let found = list.iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list:?}"))
}
