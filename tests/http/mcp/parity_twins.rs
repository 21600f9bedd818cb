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
    /// Values that later steps name by `$name`.
    pub(super) keep: Vec<(&'static str, &'static str)>,
}

/// All steps, in their order.
pub(super) struct Steps(Vec<Step>);

pub(super) const PROJECTS: &str = "/api/v1/projects";
pub(super) const PAGE: &str = "<!doctype html><title>Room</title><p>one";

pub(super) fn steps() -> Vec<Step> {
    let mut steps = Steps(Vec::new());
    steps.shares();
    steps.projects();
    steps.order();
    steps.frontends();
    steps.revisions();
    steps.releases();
    steps.backends();
    steps.restores();
    steps.rooms();
    steps.payments();
    steps.visitors();
    steps.workspaces();
    steps.ends();
    steps.0
}

impl Steps {
    pub(super) fn add(
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

    pub(super) fn keep(&mut self, name: &'static str, pointer: &'static str) {
        self.0.last_mut().unwrap().keep.push((name, pointer));
    }

    fn shares(&mut self) {
        let mine =
            json!({ "content": "# Mine", "type": "markdown", "title": "Mine", "name": "mine" });
        let path = "/api/v1/deploy".to_owned();
        let mut arguments = mine.clone();
        arguments["slug"] = arguments.as_object_mut().unwrap().remove("name").unwrap();
        self.add("deploy_asset", arguments, Method::POST, path, mine, 201);
        self.keep("mine", "/id");
        self.keep("token", "/delete_token");
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
            (
                json!({ "content": "x", "name": "brief", "expires_in": 60 }),
                201,
            ),
            (json!({ "content": "" }), 400),
            (json!({ "content": " \n" }), 400),
            (json!({ "content": "x", "expires_in": 59 }), 400),
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
            (json!({ "home": "nowhere" }), 400),
            (json!({ "home": "" }), 200),
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
        let claim = format!("{all}/claim");
        for (body, status) in [
            (json!({ "id": "$mine" }), 400),
            (json!({ "id": "$mine", "delete_token": "svcd-wrong" }), 404),
            (json!({ "id": "$mine", "delete_token": "$token" }), 201),
            (json!({ "id": "$mine", "delete_token": "$token" }), 404),
        ] {
            self.frontend("claim", "", Method::POST, &claim, body, status);
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
            (json!({ "known_content_sha256": "abc" }), 200),
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
    pub(super) fn frontend(
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
    pub(super) fn below(
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
