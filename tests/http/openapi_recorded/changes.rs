//! Changes of a project that are recorded: its backend, its revisions, its payments, and what there is in the end.

use super::*;

impl ExampleRecorder {
    /// Changes an action, lists its versions, and puts the first one back.
    pub(super) async fn record_action_versions(&mut self, project: &str) {
        let at = format!("{project}/backend/actions");
        let grown = json!({ "actions": [{
            "name": "get_note", "sql": "SELECT id, text FROM notes WHERE id = :id OR text = :text",
            "defaults": { "text": null }, "expected_version": 1,
        }] });
        let to = (Method::PUT, at.as_str());
        self.send_request(to.0, to.1, Some(&grown)).await;
        self.record("define_actions", "request", "grown", &grown);
        let path = format!("{at}/get_note/versions");
        let to = (Method::GET, path.as_str());
        self.answer(("list_action_versions", "versions"), to, None)
            .await;
        let back = json!({ "version": 1, "expected_version": 2 });
        let path = format!("{at}/get_note/rollback");
        let to = (Method::POST, path.as_str());
        self.record_request_and_answer(("rollback_action", "back"), to, back)
            .await;
    }

    pub(super) async fn record_backend_changes(&mut self, project: &str) {
        let backend = format!("{project}/backend");
        let migration = json!({
            "ddl": "ALTER TABLE notes ADD COLUMN done INTEGER NOT NULL DEFAULT 0;", "note": "What is done stays in the list.",
        });
        let tried = format!("{backend}?dry_run=true");
        let to = (Method::PATCH, tried.as_str());
        self.answer(("update_backend", "tried"), to, Some(migration.clone()))
            .await;
        let to = (Method::PATCH, backend.as_str());
        self.record_request_and_answer(("update_backend", "migration"), to.clone(), migration)
            .await;
        // A switch answers with the backend's detail.
        let switch = json!({ "realtime": true });
        self.send_request(to.0, to.1, Some(&switch)).await;
        self.record("update_backend", "request", "switch", &switch);
        let agents = json!({ "agents": true });
        let to = (Method::PATCH, backend.as_str());
        self.send_request(to.0, to.1, Some(&agents)).await;
        self.record("update_backend", "request", "agents", &agents);
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "get_note", "arguments": { "id": 1 } },
        });
        let to = (Method::POST, "/notes/mcp");
        self.record_request_and_answer(("call_app_tool", "call"), to, call)
            .await;
        let to = (Method::GET, backend.as_str());
        self.answer(("get_backend", "backend"), to, None).await;
        let path = format!("{backend}/actions");
        let to = (Method::GET, path.as_str());
        self.answer(("list_actions", "actions"), to, None).await;
        let count = json!({ "sql": "SELECT count(*) AS n FROM notes WHERE done = :done", "params": { "done": 0 }, "read_only": true });
        let path = format!("{backend}/query");
        let to = (Method::POST, path.as_str());
        self.record_request_and_answer(("query_backend", "count"), to, count)
            .await;
        let batch = json!({ "ops": [{ "action": "get_note", "params": { "id": 1 } }], "as": { "user_id": "usr_test" } });
        let path = format!("{backend}/batch");
        let to = (Method::POST, path.as_str());
        self.record_request_and_answer(("call_actions", "batch"), to, batch)
            .await;
        let path = format!("{backend}/rooms");
        let to = (Method::GET, path.as_str());
        self.answer(("list_rooms", "rooms"), to, None).await;
        let message = json!({ "type": "note", "data": { "text": "Dinner is ready" } });
        let path = format!("{backend}/rooms/kitchen/messages");
        let to = (Method::POST, path.as_str());
        self.record_request_and_answer(("send_to_room", "message"), to, message)
            .await;
        let path = format!("{backend}/history");
        let to = (Method::GET, path.as_str());
        let past = self
            .answer(("list_backend_history", "history"), to, None)
            .await;
        let body = json!({ "at": past["moments"][1]["at"] });
        let path = format!("{backend}/restore");
        let to = (Method::POST, path.as_str());
        self.record_request_and_answer(("restore_backend", "moment"), to, body)
            .await;
    }

    pub(super) async fn record_revisions(&mut self, project: &str) {
        let page = format!("{project}/frontends/notes");
        let (revisions, post) = (format!("{page}/revisions"), Method::POST);
        let history = self.send_request(Method::GET, &revisions, None).await;
        let base = history["active_revision_id"].clone();
        let edits = json!({
            "base_revision_id": base, "edits": [{ "find": "Nothing yet", "replace": "Water the beans" }], "message": "The first note",
        });
        let to = (post.clone(), revisions.as_str());
        let made = self
            .record_request_and_answer(("create_revision", "edits"), to, edits)
            .await;
        let draft = made["revision"]["revision_id"].clone();
        let path = format!("{revisions}/{}", draft.as_str().unwrap());
        let to = (Method::GET, path.as_str());
        self.answer(("get_revision", "draft"), to, None).await;
        let promotion = json!({ "revision_id": draft, "expected_active_revision_id": base, "message": "Looks right" });
        let path = format!("{page}/promote");
        let to = (post.clone(), path.as_str());
        self.record_request_and_answer(("promote_revision", "promotion"), to, promotion)
            .await;
        let path = format!("{page}/content");
        let to = (Method::GET, path.as_str());
        let content = self.answer(("get_content", "content"), to, None).await;
        let held = content["content_sha256"].as_str().unwrap();
        let path = format!("{page}/content?known_content_sha256={held}");
        let to = (Method::GET, path.as_str());
        self.answer(("get_content", "unchanged"), to, None).await;
        let rollback = json!({ "revision_id": base, "expected_active_revision_id": draft, "message": "Too early" });
        let path = format!("{page}/rollback");
        let to = (post, path.as_str());
        self.record_request_and_answer(("rollback_revision", "rollback"), to, rollback)
            .await;
        let to = (Method::GET, revisions.as_str());
        self.answer(("list_revisions", "revisions"), to, None).await;
        let path = format!("{page}/releases");
        let to = (Method::GET, path.as_str());
        self.answer(("list_releases", "releases"), to, None).await;
        let body = json!({ "content": "<!doctype html><title>Notes</title><p>Water the beans", "title": "Notes" });
        let to = (Method::PUT, page.as_str());
        self.record_request_and_answer(("republish_frontend", "page"), to, body)
            .await;
        let to = (Method::GET, page.as_str());
        self.answer(("get_frontend", "frontend"), to, None).await;
    }

    /// Records a site: its publication, its files, and changes of single ones.
    pub(super) async fn record_site(&mut self, project: &str) {
        let site = json!({
            "type": "site", "requested_slug": "garden",
            "files": {
                "index.html": { "text": "<!doctype html><title>Garden</title><script src=\"beds.js\"></script>" },
                "beds.js": { "text": "document.title += ' in May'" },
            },
        });
        let frontends = format!("{project}/frontends");
        let to = (Method::POST, frontends.as_str());
        self.record_request_and_answer(("create_frontend", "site"), to, site)
            .await;
        let content = format!("{frontends}/garden/content");
        let to = (Method::GET, content.as_str());
        self.answer(("get_content", "site"), to, None).await;
        self.server.advance(7);
        let file = format!("{frontends}/garden/files/beans.txt");
        let request = self.owner.request(&self.server, Method::PUT, &file);
        let request = request.header("content-length", 5).body("beans");
        let live = request.answer().await.expect(200).json();
        self.record("put_file", "answer", "site", &live);
        let to = (Method::DELETE, file.as_str());
        self.answer(("delete_file", "site"), to, None).await;
        self.record_site_revisions(&frontends).await;
        let shared = json!({
            "type": "site", "name": "picnic", "files": { "index.html": { "text": "<!doctype html><title>Picnic</title>" } },
        });
        let to = (Method::POST, "/api/v1/deploy");
        self.record_request_and_answer(("deploy", "site"), to, shared)
            .await;
    }

    /// Records a draft of changes, and all files anew.
    async fn record_site_revisions(&mut self, frontends: &str) {
        let revisions = format!("{frontends}/garden/revisions");
        let history = self.send_request(Method::GET, &revisions, None).await;
        let changes = json!({
            "base_revision_id": history["active_revision_id"],
            "changes": {
                "set": { "beans.svg": { "text": "<svg xmlns=\"http://www.w3.org/2000/svg\"/>" } },
                "edits": [{ "path": "beds.js", "find": "May", "replace": "June" }],
            },
            "options": { "fallback": "index.html" },
        });
        let to = (Method::POST, revisions.as_str());
        self.record_request_and_answer(("create_revision", "changes"), to, changes)
            .await;
        let all = json!({ "files": { "index.html": { "text": "<!doctype html><title>Garden</title>" } } });
        let garden = format!("{frontends}/garden");
        let to = (Method::PUT, garden.as_str());
        self.record_request_and_answer(("republish_frontend", "site"), to, all)
            .await;
    }

    /// Has a visitor upload a file, and lists it.
    pub(super) async fn record_files(&mut self, project: &str) {
        let attach = json!({ "actions": [{
            "name": "attach", "sql": "INSERT INTO notes (text) VALUES (:svc_file) RETURNING id",
            "files": { "types": ["image/*", "application/pdf"], "sizes": [256], "anonymous": true },
        }] });
        let actions = format!("{project}/backend/actions");
        self.send_request(Method::PUT, &actions, Some(&attach))
            .await;
        self.record("define_actions", "request", "files", &attach);
        self.server.advance(7);
        let path = "/notes/api/files/attach?name=beans.pdf";
        let request = self.server.request(Method::POST, path);
        let uploaded = request.body("%PDF-1.7 beans").answer().await.expect(201);
        self.record("upload_file", "answer", "pdf", &uploaded.json());
        let files = format!("{project}/files");
        let to = (Method::GET, files.as_str());
        self.answer(("list_files", "files"), to, None).await;
    }

    pub(super) async fn record_project_release(&mut self, project: &str) {
        let page = self
            .send_request(Method::GET, &format!("{project}/frontends/notes"), None)
            .await;
        let mut release = json!({
            "migrations": [{ "ddl": "ALTER TABLE notes ADD COLUMN due TEXT;", "note": "Some notes are due." }],
            "actions": [{ "name": "due_notes", "sql": "SELECT id, text, due FROM notes WHERE due <= :day ORDER BY due", "note": "Anybody may." }],
            "pages": [{
                "slug": "notes", "content": "<!doctype html><title>Notes</title><p>Nothing is due",
                "expected_active_revision_id": page["active_revision_id"],
            }],
            "message": "Notes are due",
            "dry_run": true,
        });
        let path = format!("{project}/release");
        let to = (Method::POST, path.as_str());
        self.answer(
            ("release_project", "tried"),
            to.clone(),
            Some(release.clone()),
        )
        .await;
        release.as_object_mut().unwrap().remove("dry_run");
        self.record_request_and_answer(("release_project", "release"), to, release)
            .await;
    }

    pub(super) async fn record_payments(&mut self, project: &str) {
        let (payments, post) = (format!("{project}/payments"), Method::POST);
        let catalog = format!("{payments}/catalog");
        let price = json!({
            "key": "handbook", "product_name": "Handbook", "description": "All there is to know.", "label": "PDF", "amount": 900, "currency": "eur",
        });
        let to = (post.clone(), catalog.as_str());
        let made = self
            .record_request_and_answer(("add_price", "price"), to, price)
            .await;
        self.server.advance(7);
        let order = json!({ "price": made["id"], "return_to": "/notes#thanks" });
        let begun = self.server.json("/notes/payments/checkout", &order);
        let begun = begun.header("accept", "application/json").answer().await;
        let cookie = begun
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap();
        let cookie = cookie.to_owned();
        self.record("begin_checkout", "request", "order", &order);
        self.record(
            "begin_checkout",
            "answer",
            "page",
            &begun.expect(200).json(),
        );
        self.server.advance(7);
        let now = self.server.server().app().clock.now();
        let paid = fake_stripe::checkout("cs_test_1", "paid");
        let event = fake_stripe::event("evt_1", "checkout.session.completed", now.0 / 1000, &paid);
        let sent =
            fake_stripe::send_webhook(&self.server, event.to_string(), fake_stripe::SECRET, now)
                .await;
        self.record("receive_webhook", "request", "completed", &event);
        self.record(
            "receive_webhook",
            "answer",
            "received",
            &sent.expect(200).json(),
        );
        let status = self
            .server
            .get("/notes/payments/status")
            .header("cookie", cookie);
        let status = status.answer().await.expect(200).json();
        self.record("payment_status", "answer", "paid", &status);
        let offers = self.server.get("/notes/payments/catalog").answer().await;
        let offers = offers.expect(200).json();
        self.record("list_offers", "answer", "prices", &offers);
        let sessions = format!("{payments}/sessions");
        let to = (Method::GET, sessions.as_str());
        self.answer(("list_sessions", "sessions"), to, None).await;
        let price = format!("{catalog}/{}", made["id"].as_str().unwrap());
        let to = (Method::DELETE, price.as_str());
        self.answer(("deactivate_price", "price"), to, None).await;
        let to = (Method::GET, catalog.as_str());
        self.answer(("list_catalog", "catalog"), to, None).await;
    }

    pub(super) async fn record_overview(&mut self, project: &str) {
        for (example, path) in [
            (
                ("list_frontends", "frontends"),
                format!("{project}/frontends"),
            ),
            (("get_project", "project"), project.to_owned()),
            (("list_projects", "projects"), "/api/v1/projects".to_owned()),
        ] {
            self.answer(example, (Method::GET, &path), None).await;
        }
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "manage_project", "arguments": { "action": "list" } },
        });
        let to = (Method::POST, "/mcp");
        self.record_request_and_answer(("call_tool", "call"), to, call)
            .await;
        let whole = self
            .send_request(Method::GET, "/api/v1/openapi.json", None)
            .await;
        let part = json!({
            "openapi": whole["openapi"], "servers": whole["servers"], "paths": { "/healthz": {} },
            "info": { "title": whole["info"]["title"], "version": whole["info"]["version"] },
        });
        self.record("serve", "answer", "description", &part);
    }
}
