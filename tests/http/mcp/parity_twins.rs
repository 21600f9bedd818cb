//! The steps of the parity test: what a tool is asked, and what REST is asked for the same.

use http::Method;
use serde_json::{Value, json};

/// A call of a tool and its twin.
pub(super) struct Step {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Value,
    /// REST's status.
    pub(super) status: u16,
    /// What later steps name by `$name`.
    pub(super) keep: Vec<(&'static str, &'static str)>,
}

struct Steps(Vec<Step>);

const PROJECTS: &str = "/api/v1/projects";
const PAGE: &str = "<!doctype html><title>Room</title><p>one";

pub(super) fn steps() -> Vec<Step> {
    let mut steps = Steps(Vec::new());
    steps.shares();
    steps.projects();
    steps.frontends();
    steps.revisions();
    steps.releases();
    steps.backends();
    steps.ends();
    steps.0
}

impl Steps {
    fn add(
        &mut self,
        tool: &'static str,
        arguments: Value,
        method: Method,
        path: String,
        body: Value,
        status: u16,
    ) {
        self.0.push(Step {
            tool,
            arguments,
            method,
            path,
            body,
            status,
            keep: Vec::new(),
        });
    }

    fn keep(&mut self, name: &'static str, pointer: &'static str) {
        self.0.last_mut().unwrap().keep.push((name, pointer));
    }

    fn shares(&mut self) {
        for (mut body, status) in [
            (
                json!({ "content": "# Hi", "type": "markdown", "name": "note", "title": "Note" }),
                201,
            ),
            (json!({ "content": "x", "name": "note" }), 201),
            (
                json!({ "content": "x", "name": "once", "one_time": true, "password": "p" }),
                201,
            ),
            (json!({ "content": "" }), 400),
            (json!({ "content": "x", "type": "pdf" }), 400),
            (json!({ "content": "x", "name": "No!" }), 400),
            (json!({ "content": "x", "title": "t".repeat(201) }), 400),
            (json!({ "content": "x", "password": "" }), 400),
            (json!({ "content": "{", "type": "json" }), 400),
        ] {
            let rest = body.clone();
            if let Some(name) = body.as_object_mut().unwrap().remove("name") {
                body["slug"] = name;
            }
            self.add(
                "deploy_asset",
                body,
                Method::POST,
                "/api/v1/deploy".into(),
                rest,
                status,
            );
        }
    }

    /// An action of a project, whose arguments beside `project_id` are REST's body.
    fn project(
        &mut self,
        action: &str,
        id: Option<&str>,
        method: Method,
        body: Value,
        status: u16,
    ) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        let mut path = PROJECTS.to_owned();
        if let Some(id) = id {
            arguments["project_id"] = id.into();
            path = format!("{path}/{id}");
        }
        self.add("manage_project", arguments, method, path, body, status);
    }

    fn projects(&mut self) {
        let post = Method::POST;
        self.project(
            "create",
            None,
            post.clone(),
            json!({ "name": "House", "description": "Mine" }),
            201,
        );
        self.keep("project", "/id");
        for (body, status) in [
            (json!({ "name": "Brief", "ttl_seconds": 3600 }), 201),
            (json!({}), 400),
            (json!({ "name": " " }), 400),
            (json!({ "name": "x".repeat(101) }), 400),
            (
                json!({ "name": "x", "ttl_seconds": 60, "permanent": true }),
                400,
            ),
            (json!({ "name": "x", "permanent": false }), 400),
            (json!({ "name": "x", "ttl_seconds": 5 }), 400),
            (json!({ "name": "x", "workspace": "nowhere" }), 404),
            (json!({ "name": "x", "workspace": "zeta" }), 403),
        ] {
            self.project("create", None, post.clone(), body, status);
        }
        self.project("list", None, Method::GET, json!({}), 200);
        for (workspace, status) in [("acme", 200), ("zeta", 403), ("nowhere", 404)] {
            let arguments = json!({ "action": "list", "workspace": workspace });
            let path = format!("{PROJECTS}?workspace={workspace}");
            self.add(
                "manage_project",
                arguments,
                Method::GET,
                path,
                Value::Null,
                status,
            );
        }
        for (id, status) in [
            ("$project", 200),
            ("$nobody", 404),
            ("none", 404),
            ("$free", 403),
        ] {
            self.project("get", Some(id), Method::GET, json!({}), status);
        }
        for (body, status) in [
            (json!({ "name": "Home" }), 200),
            (json!({ "description": "" }), 200),
            (json!({ "allowed_providers": [] }), 200),
            (json!({}), 400),
            (json!({ "name": "" }), 400),
            (json!({ "description": "x".repeat(2001) }), 400),
            (json!({ "allowed_providers": ["nobody"] }), 400),
        ] {
            self.project("update", Some("$project"), Method::PATCH, body, status);
        }
        self.project(
            "update",
            Some("$free"),
            Method::PATCH,
            json!({ "name": "x" }),
            403,
        );
    }

    fn frontends(&mut self) {
        let all = format!("{PROJECTS}/$project/frontends");
        let new =
            json!({ "type": "html", "content": PAGE, "requested_slug": "room", "title": "Room" });
        self.frontend("create", "", Method::POST, &all, new, 201);
        self.keep("room", "/id");
        self.keep("sha", "/content_sha256");
        for (body, status) in [
            (
                json!({ "type": "csv", "content": "a,b\n1,2", "requested_slug": "room" }),
                201,
            ),
            (json!({ "type": "html", "content": "" }), 400),
            (json!({ "content": "x" }), 400),
            (json!({ "type": "database", "content": "x" }), 400),
            (
                json!({ "type": "html", "content": "x", "password": "p" }),
                400,
            ),
            (
                json!({ "type": "html", "content": "x", "requested_slug": "No!" }),
                400,
            ),
            (json!({ "type": "json", "content": "{" }), 400),
        ] {
            self.frontend("create", "", Method::POST, &all, body, status);
        }
        self.frontend("list", "", Method::GET, &all, json!({}), 200);
        for (id, status) in [("$nobody", 404), ("$free", 403)] {
            let arguments = json!({ "action": "list", "project_id": id });
            let path = format!("{PROJECTS}/{id}/frontends");
            self.add(
                "manage_frontend",
                arguments,
                Method::GET,
                path,
                Value::Null,
                status,
            );
        }
        for (target, status) in [
            ("room", 200),
            ("$room", 200),
            ("nowhere", 404),
            ("$nobody", 404),
        ] {
            let path = format!("{all}/{target}");
            self.frontend("get", target, Method::GET, &path, json!({}), status);
        }
        for (query, status) in [
            (json!({}), 200),
            (json!({ "known_content_sha256": "$sha" }), 200),
            (json!({ "known_content_sha256": "abc" }), 400),
            (json!({ "revision_id": "$nobody" }), 404),
            (json!({ "revision_id": "none" }), 404),
        ] {
            let path = format!("{all}/room/content{}", queried(&query));
            self.frontend("content", "room", Method::GET, &path, query, status);
        }
        for (body, status) in [
            (
                json!({ "content": PAGE.replace("one", "two"), "title": "Two" }),
                200,
            ),
            (json!({ "content": "" }), 400),
            (json!({}), 400),
            (json!({ "content": "x", "type": "csv" }), 400),
            (json!({ "content": "x", "requested_slug": "other" }), 400),
            (json!({ "content": "x", "title": "t".repeat(201) }), 400),
        ] {
            let path = format!("{all}/room");
            self.frontend("update", "room", Method::PUT, &path, body, status);
        }
        let path = format!("{all}/nowhere");
        self.frontend(
            "update",
            "nowhere",
            Method::PUT,
            &path,
            json!({ "content": "x" }),
            404,
        );
    }

    /// An action of a frontend, whose other arguments are REST's body or query.
    fn frontend(
        &mut self,
        action: &str,
        target: &str,
        method: Method,
        path: &str,
        body: Value,
        status: u16,
    ) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        arguments["project_id"] = "$project".into();
        if !target.is_empty() {
            let name = if target.starts_with('$') {
                "id"
            } else {
                "slug"
            };
            arguments[name] = target.into();
        }
        self.add(
            "manage_frontend",
            arguments,
            method,
            path.to_owned(),
            body,
            status,
        );
    }

    /// An action below a frontend.
    fn below(
        &mut self,
        action: &str,
        target: &str,
        method: Method,
        rest: &str,
        body: Value,
        status: u16,
    ) {
        let path = format!("{PROJECTS}/$project/frontends/{target}/{rest}");
        self.frontend(action, target, method, &path, body, status);
    }

    fn revisions(&mut self) {
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

    fn releases(&mut self) {
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
    fn backend(&mut self, action: &str, method: Method, below: &str, body: Value, status: u16) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        arguments["project_id"] = "$project".into();
        let path = format!("{PROJECTS}/$project/backend{below}");
        self.add("manage_backend", arguments, method, path, body, status);
    }

    fn backends(&mut self) {
        let table = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);";
        let actions = json!([{ "name": "add", "sql": "INSERT INTO notes (text) VALUES (:text)", "note": "n" }]);
        self.backend("get", Method::GET, "", json!({}), 404);
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
        ] {
            self.backend(
                "update",
                Method::PUT,
                "/actions",
                json!({ "actions": actions }),
                status,
            );
        }
        self.backend("get", Method::GET, "", json!({}), 200);
    }

    fn ends(&mut self) {
        for tool in ["manage_backend", "manage_frontend"] {
            for (id, status) in [
                ("$project", 204),
                ("$project", 204),
                ("$nobody", 404),
                ("$free", 403),
            ] {
                let mut arguments = json!({ "action": "delete", "project_id": id });
                let mut path = format!("{PROJECTS}/{id}/backend");
                if tool == "manage_frontend" {
                    arguments["slug"] = "room".into();
                    path = format!("{PROJECTS}/{id}/frontends/room");
                }
                self.add(tool, arguments, Method::DELETE, path, Value::Null, status);
            }
        }
        for (id, status) in [
            ("$project", 204),
            ("$project", 204),
            ("none", 204),
            ("$free", 403),
        ] {
            self.project("delete", Some(id), Method::DELETE, json!({}), status);
        }
        self.project("get", Some("$project"), Method::GET, json!({}), 404);
    }
}

/// A document's members as a query.
fn queried(members: &Value) -> String {
    let members = members.as_object().unwrap().iter();
    let pairs: Vec<_> = members
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}
