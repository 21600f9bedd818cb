//! Steps of the parity test in which two things are wrong: whether something is there, and whose, is told first.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::{PROJECTS, Steps};

/// A call with a bad argument: the tool, what it is asked for, REST's method and path below the project, and the
/// argument, which REST takes in the body of a request that has one, else in the query.
type Bad = (
    &'static str,
    Value,
    Method,
    &'static str,
    (&'static str, Value),
);

impl Steps {
    /// While `$project` has neither a backend nor a frontend.
    pub(super) fn order(&mut self) {
        for (id, status) in [("$nobody", 404), ("$free", 403)] {
            for bad in backend() {
                self.bad(id, bad, status);
            }
            for bad in frontend() {
                self.bad(id, bad, status);
            }
            for bad in project() {
                self.bad(id, bad, status);
            }
        }
        for bad in backend() {
            let status = match bad.1["action"].as_str() {
                Some("create" | "delete") => 400,
                _ => 404,
            };
            // What it takes no `nonsense` with is told in words of its own.
            if bad.1["action"] != "delete" {
                self.bad("$project", bad, status);
            }
        }
        for bad in frontend() {
            if !matches!(bad.1["action"].as_str(), Some("create" | "list" | "delete")) {
                self.bad("$project", bad, 404);
            }
        }
        let gone = json!({ "action": "delete", "project_id": "$nobody", "nonsense": "1" });
        let path = format!("{PROJECTS}/$nobody?nonsense=1");
        self.add(
            "manage_project",
            gone,
            Method::DELETE,
            path,
            Value::Null,
            204,
        );
    }

    fn bad(&mut self, id: &str, (tool, asked, method, below, (name, value)): Bad, status: u16) {
        let mut arguments = asked;
        arguments["project_id"] = id.into();
        arguments[name] = value.clone();
        let mut path = format!("{PROJECTS}/{id}{below}");
        if matches!(method, Method::GET | Method::DELETE) {
            let text = value.to_string();
            path = format!("{path}?{name}={}", text.trim_matches('"'));
        }
        self.add(
            tool,
            arguments,
            method,
            path,
            json!({ name: value }),
            status,
        );
    }
}

fn asked(action: &str) -> Value {
    json!({ "action": action })
}

fn backend() -> Vec<Bad> {
    let (tool, nonsense) = ("manage_backend", ("nonsense", json!("1")));
    let (get, ddl, actions) = (Method::GET, ("ddl", json!(5)), ("actions", json!(5)));
    let (update, below) = (asked("update"), "/backend");
    vec![
        (tool, asked("create"), Method::POST, below, ddl.clone()),
        (tool, asked("get"), get.clone(), below, nonsense.clone()),
        (tool, update.clone(), Method::PATCH, below, ddl),
        (tool, update, Method::PUT, "/backend/actions", actions),
        (
            tool,
            asked("delete"),
            Method::DELETE,
            below,
            nonsense.clone(),
        ),
        (
            tool,
            asked("export"),
            get.clone(),
            "/backend/export",
            nonsense,
        ),
        (
            tool,
            asked("history"),
            get,
            "/backend/history",
            ("limit", json!(0)),
        ),
        (
            tool,
            asked("restore"),
            Method::POST,
            "/backend/restore",
            ("at", json!(5)),
        ),
    ]
}

fn frontend() -> Vec<Bad> {
    let (tool, nonsense) = ("manage_frontend", ("nonsense", json!("1")));
    let (get, post) = (Method::GET, Method::POST);
    let room = |action: &str| json!({ "action": action, "slug": "room" });
    let revision = json!({ "action": "get_revision", "slug": "room", "revision_id": "$nobody" });
    let (all, one) = ("/frontends", "/frontends/room");
    let (history, release) = ("/frontends/room/revisions", ("revision_id", json!(5)));
    let releases = "/frontends/room/releases";
    vec![
        (tool, asked("create"), post.clone(), all, ("type", json!(5))),
        (tool, asked("list"), get.clone(), all, nonsense.clone()),
        (tool, room("get"), get.clone(), one, nonsense.clone()),
        (tool, room("delete"), Method::DELETE, one, nonsense.clone()),
        (
            tool,
            room("update"),
            Method::PUT,
            one,
            ("content", json!(5)),
        ),
        (
            tool,
            room("content"),
            get.clone(),
            "/frontends/room/content",
            nonsense.clone(),
        ),
        (
            tool,
            room("create_revision"),
            post.clone(),
            history,
            ("content", json!(5)),
        ),
        (
            tool,
            room("list_revisions"),
            get.clone(),
            history,
            ("limit", json!(0)),
        ),
        (
            tool,
            room("promote"),
            post.clone(),
            "/frontends/room/promote",
            release.clone(),
        ),
        (
            tool,
            room("rollback"),
            post,
            "/frontends/room/rollback",
            release,
        ),
        (
            tool,
            room("releases"),
            get.clone(),
            releases,
            nonsense.clone(),
        ),
        (
            tool,
            revision,
            get,
            "/frontends/room/revisions/$nobody",
            nonsense,
        ),
    ]
}

fn project() -> Vec<Bad> {
    let (tool, nonsense) = ("manage_project", ("nonsense", json!("1")));
    vec![
        (tool, asked("get"), Method::GET, "", nonsense),
        (tool, asked("update"), Method::PATCH, "", ("name", json!(5))),
    ]
}
