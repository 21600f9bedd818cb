//! More steps of the parity test: histories, releases, backends.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::{PAGE, PROJECTS, Steps};

impl Steps {
    pub(super) fn revisions(&mut self) {
        let get = Method::GET;
        self.below(
            "list_revisions",
            "room",
            get.clone(),
            "revisions",
            json!({}),
            200,
        );
        self.keep("active", "/active_revision_id");
        self.keep("baseline", "/revisions/1/revision_id");
        for (limit, status) in [(1, 200), (0, 400), (201, 400)] {
            let rest = format!("revisions?limit={limit}");
            self.below(
                "list_revisions",
                "room",
                get.clone(),
                &rest,
                json!({ "limit": limit }),
                status,
            );
            if status == 200 {
                self.keep("cursor", "/next_cursor");
            }
        }
        for (cursor, status) in [("$cursor", 200), ("x", 400)] {
            let rest = format!("revisions?cursor={cursor}");
            self.below(
                "list_revisions",
                "room",
                get.clone(),
                &rest,
                json!({ "cursor": cursor }),
                status,
            );
        }
        self.below(
            "list_revisions",
            "nowhere",
            get.clone(),
            "revisions",
            json!({}),
            404,
        );
        for (revision, status) in [("$active", 200), ("$nobody", 404), ("none", 404)] {
            let path = format!("{PROJECTS}/$project/frontends/room/revisions/{revision}");
            let arguments = json!({ "action": "get_revision", "project_id": "$project", "slug": "room", "revision_id": revision });
            self.add(
                "manage_frontend",
                arguments,
                get.clone(),
                path,
                Value::Null,
                status,
            );
        }
        let base = "$active";
        let edit = json!([{ "find": "two", "replace": "three" }]);
        let body = json!({ "base_revision_id": base, "edits": edit, "message": "three" });
        self.below(
            "create_revision",
            "room",
            Method::POST,
            "revisions",
            body.clone(),
            200,
        );
        self.keep("draft", "/revision/revision_id");
        self.below(
            "create_revision",
            "room",
            Method::POST,
            "revisions",
            body,
            200,
        );
        let body = json!({ "base_revision_id": base, "content": PAGE.replace("one", "four") });
        self.below(
            "create_revision",
            "room",
            Method::POST,
            "revisions",
            body,
            200,
        );
        self.keep("other", "/revision/revision_id");
        for (body, status) in [
            (
                json!({ "base_revision_id": "$nobody", "content": "x" }),
                409,
            ),
            (json!({ "base_revision_id": "none", "content": "x" }), 409),
            (json!({ "content": "x" }), 400),
            (json!({ "base_revision_id": base }), 400),
            (json!({ "base_revision_id": base, "content": "" }), 400),
            (
                json!({ "base_revision_id": base, "content": "x", "edits": edit }),
                400,
            ),
            (json!({ "base_revision_id": base, "edits": [] }), 400),
            (
                json!({ "base_revision_id": base, "edits": [{ "find": "", "replace": "x" }] }),
                400,
            ),
            (
                json!({ "base_revision_id": base, "edits": [{ "find": "nowhere", "replace": "x" }] }),
                400,
            ),
            (
                json!({ "base_revision_id": base, "edits": [{ "find": "p", "replace": "x", "count": 0 }] }),
                400,
            ),
            (
                json!({ "base_revision_id": base, "content": "x", "message": "m".repeat(1001) }),
                400,
            ),
        ] {
            self.below(
                "create_revision",
                "room",
                Method::POST,
                "revisions",
                body,
                status,
            );
        }
        let body = json!({ "base_revision_id": base, "content": "x" });
        self.below(
            "create_revision",
            "nowhere",
            Method::POST,
            "revisions",
            body,
            404,
        );
    }

    pub(super) fn releases(&mut self) {
        let release = |revision: &str, expected: &str| json!({ "revision_id": revision, "expected_active_revision_id": expected });
        for (action, revision, expected, status) in [
            ("rollback", "$other", "$active", 400),
            ("promote", "$draft", "$nobody", 409),
            ("promote", "$nobody", "$active", 404),
            ("promote", "none", "$active", 404),
            ("promote", "$draft", "$active", 200),
            ("promote", "$draft", "$draft", 200),
            ("promote", "$other", "$active", 409),
            ("rollback", "$baseline", "$active", 409),
            ("rollback", "$baseline", "$draft", 200),
        ] {
            self.below(
                action,
                "room",
                Method::POST,
                action,
                release(revision, expected),
                status,
            );
        }
        for action in ["promote", "rollback"] {
            let mut body = release("$draft", "$baseline");
            self.below(action, "nowhere", Method::POST, action, body.clone(), 404);
            body["message"] = "m".repeat(1001).into();
            self.below(action, "room", Method::POST, action, body, 400);
            self.below(
                action,
                "room",
                Method::POST,
                action,
                json!({ "revision_id": "$draft" }),
                400,
            );
        }
        self.below("releases", "room", Method::GET, "releases", json!({}), 200);
        self.below(
            "releases",
            "nowhere",
            Method::GET,
            "releases",
            json!({}),
            404,
        );
    }

    /// An action of the backend.
    pub(super) fn backend(
        &mut self,
        action: &str,
        method: Method,
        below: &str,
        body: Value,
        status: u16,
    ) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        arguments["project_id"] = "$project".into();
        let path = format!("{PROJECTS}/$project/backend{below}");
        self.add("manage_backend", arguments, method, path, body, status);
    }

    pub(super) fn backends(&mut self) {
        let table = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
        let actions = json!([{ "name": "add", "sql": "INSERT INTO notes (text) VALUES (:text)", "note": "n" }]);
        self.backend("get", Method::GET, "", json!({}), 404);
        self.backend("export", Method::GET, "/export", json!({}), 404);
        self.backend("history", Method::GET, "/history", json!({}), 404);
        let moment = json!({ "at": "2026-11-20T12:00:00Z" });
        self.backend("restore", Method::POST, "/restore", moment, 404);
        self.backend("update", Method::PATCH, "", json!({ "ddl": table }), 404);
        self.backend(
            "update",
            Method::PUT,
            "/actions",
            json!({ "actions": actions }),
            404,
        );
        for (ddl, status) in [
            ("", 400),
            ("DROP TABLE x", 400),
            ("CREATE TABLE a (b", 400),
            (table, 201),
            (table, 409),
        ] {
            self.backend("create", Method::POST, "", json!({ "ddl": ddl }), status);
        }
        self.backend("create", Method::POST, "", json!({}), 400);
        for (body, status) in [
            (
                json!({ "ddl": "ALTER TABLE notes ADD COLUMN at TEXT", "note": "when" }),
                200,
            ),
            (
                json!({ "ddl": "ALTER TABLE notes ADD COLUMN at TEXT" }),
                200,
            ),
            (json!({ "ddl": "DROP TABLE notes" }), 400),
            (
                json!({ "ddl": "INSERT INTO notes (id, text) VALUES (1, 'a'), (1, 'b')" }),
                409,
            ),
            (json!({ "realtime": true }), 200),
            (json!({}), 400),
            (json!({ "ddl": "x", "realtime": true }), 400),
            (json!({ "ddl": "x", "note": "n".repeat(1001) }), 400),
        ] {
            self.backend("update", Method::PATCH, "", body, status);
        }
        for (actions, status) in [
            (actions, 200),
            (json!([]), 400),
            (
                json!([{ "name": "Bad", "sql": "SELECT 1" }, { "name": "worse", "sql": "DROP TABLE notes" }]),
                400,
            ),
            (
                json!([{ "name": "lost", "sql": "SELECT * FROM nowhere" }]),
                400,
            ),
            (json!("add"), 400),
            (Value::Null, 400),
        ] {
            self.backend(
                "update",
                Method::PUT,
                "/actions",
                json!({ "actions": actions }),
                status,
            );
        }
        self.trials(table);
        self.batches();
        self.backend("get", Method::GET, "", json!({}), 200);
        self.backend("export", Method::GET, "/export", json!({}), 200);
    }

    /// Changes of the backend that are only tried.
    fn trials(&mut self, applied: &str) {
        let one = json!([{ "name": "one", "sql": "SELECT 1 AS one" }]);
        for (body, status) in [
            (json!({ "ddl": "CREATE TABLE more (a)" }), 200),
            (json!({ "ddl": applied }), 200),
            (json!({ "ddl": "DROP TABLE notes" }), 400),
            (json!({ "realtime": true }), 400),
            (json!({ "actions": one }), 200),
            (json!({ "actions": [] }), 400),
        ] {
            let (method, below) = match body.get("actions") {
                Some(_) => (Method::PUT, "/actions"),
                None => (Method::PATCH, ""),
            };
            let path = format!("{PROJECTS}/$project/backend{below}?dry_run=true");
            let mut arguments = body.clone();
            arguments["action"] = "update".into();
            arguments["project_id"] = "$project".into();
            arguments["dry_run"] = true.into();
            self.add("manage_backend", arguments, method, path, body, status);
        }
    }

    /// Calls of actions, several as one.
    fn batches(&mut self) {
        let add = |text: Value| json!({ "action": "add", "params": { "text": text } });
        for (ops, status) in [
            (json!([add("a".into()), add("b".into())]), 200),
            (json!([add("a".into()), add(Value::Null)]), 409),
            (json!([add("a".into()), { "action": "nothing" }]), 404),
            (json!([{ "action": "add" }]), 400),
            (json!([add(json!({ "from": [0, "id"] }))]), 400),
            (json!([]), 400),
        ] {
            let body = json!({ "ops": ops });
            let mut arguments = body.clone();
            arguments["action"] = "batch".into();
            arguments["project_id"] = "$project".into();
            let path = "/room/api/op".to_owned();
            self.add(
                "manage_backend",
                arguments,
                Method::POST,
                path,
                body,
                status,
            );
        }
    }

    /// Going back to what a backend was.
    pub(super) fn restores(&mut self) {
        let moment = "2026-11-20T12:00:00.000Z";
        for (query, status) in [
            (json!({}), 200),
            (json!({ "limit": 1, "before": moment }), 200),
            (json!({ "limit": 0 }), 400),
            (json!({ "limit": 1001 }), 400),
            (json!({ "before": "yesterday" }), 400),
            (json!({ "after": "x" }), 400),
        ] {
            let pairs = query.as_object().unwrap().iter();
            let pairs = pairs.map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            });
            let below = format!("/history?{}", pairs.collect::<Vec<_>>().join("&"));
            self.backend("history", Method::GET, &below, query, status);
        }
        for (body, status) in [
            (json!({ "at": moment }), 200),
            (json!({ "at": moment, "to": 1 }), 400),
            (json!({ "at": "yesterday" }), 400),
            (json!({ "at": "2036-11-20T12:00:00Z" }), 400),
            (json!({ "at": "2016-11-20T12:00:00Z" }), 404),
            (json!({}), 400),
        ] {
            self.backend("restore", Method::POST, "/restore", body, status);
        }
        self.backend("history", Method::GET, "/history", json!({}), 200);
        self.backend("get", Method::GET, "", json!({}), 200);
    }
}
