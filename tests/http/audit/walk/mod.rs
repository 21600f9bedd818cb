//! A walk through all operations, each of which leaves its entry.

mod activity;
mod files;

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc::content::Digest;
use svc::operations;
use svc_tests::dns::DnsServer;
use svc_tests::{ReadAnswer, TestServer};

use super::{PROJECTS, WORKSPACES, entries};
use crate::domains::use_dns;
use crate::members::{MembersFixture, User};
use crate::owner::text;
use crate::svc;

/// A walk through all operations by a user, over REST or as tools where there are such.
pub(super) struct OperationsWalk {
    pub(super) fixture: MembersFixture,
    dns: DnsServer,
    alice: User,
    pub(super) workspace: String,
    as_tools: bool,
    /// Operations that were called.
    pub(super) done: BTreeSet<&'static str>,
}

/// Method, path and body of an operation over REST.
struct RestRequest(Method, String, Value);

impl OperationsWalk {
    /// Calls every operation, from the making of a workspace to its end.
    pub(super) async fn run(as_tools: bool) -> Self {
        let mut walk = Self::new(as_tools).await;
        let project = walk.create_pages().await;
        walk.change_backend(&project).await;
        walk.create_prices(&project).await;
        walk.change_visitors(&project).await;
        walk.change_domains(&project).await;
        walk.read_activity(&project).await;
        walk.change_workspace().await;
        walk.delete_everything(&project).await;
        walk
    }

    async fn new(as_tools: bool) -> Self {
        let dns = DnsServer::start().await;
        let builder = TestServer::builder().settings(|settings| use_dns(settings, &dns));
        let fixture = MembersFixture::with_settings(builder, |_| ()).await;
        let alice = fixture.user("alice").await;
        let mut walk = Self {
            fixture,
            dns,
            alice,
            workspace: "00000000-0000-7000-8000-000000000001".to_owned(),
            as_tools,
            done: BTreeSet::new(),
        };
        let body = json!({ "display_name": "Acme", "slug": "acme" });
        let (answer, request_id) = walk
            .send_request(
                "create_workspace",
                RestRequest(Method::POST, WORKSPACES.to_owned(), body.clone()),
                body,
            )
            .await;
        walk.workspace = text(&answer["id"]);
        let made = entries(&walk.fixture.server, &walk.workspace).await;
        let expected = json!([{
            "at": "2026-11-20T12:00:00.000Z", "principal": walk.alice.id, "action": "workspace.create",
            "target": walk.workspace, "request_id": request_id,
        }]);
        assert_eq!(json!(made), expected);
        let pro = ["namespace", "plan", "acme", "pro"];
        let pro = walk.fixture.server.command(&svc(), &pro).await;
        assert!(pro.success, "{pro:?}");
        walk
    }

    /// Calls an operation; returns its document and the id of the request.
    async fn send_request(
        &mut self,
        id: &'static str,
        rest: RestRequest,
        mut given: Value,
    ) -> (Value, String) {
        let all = operations::all();
        let row = all.iter().find(|row| row.id == id).unwrap();
        self.done.insert(row.id);
        let Some((tool, action)) = row.tool.filter(|_| self.as_tools) else {
            let RestRequest(method, path, body) = rest;
            let request = self
                .alice
                .owner
                .request(&self.fixture.server, method.clone(), &path);
            let request = match method {
                Method::GET | Method::DELETE => request,
                _ => match body.as_str() {
                    // A file is sent as it is.
                    Some(file) => request
                        .header("content-length", file.len())
                        .body(file.to_owned()),
                    None => request.json(&body),
                },
            };
            let answer = request.answer().await;
            assert!(answer.status < 300, "{id}: {}", answer.text());
            let request_id = answer.header("x-request-id").unwrap().to_owned();
            let document = serde_json::from_slice(&answer.body).unwrap_or_default();
            return (document, request_id);
        };
        given["action"] = action.into();
        let params = json!({ "name": tool, "arguments": given });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = self.fixture.server.json("/mcp", &body);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        let request = request.bearer_auth(&self.alice.owner.credential);
        let answer = request.answer().await.expect(200);
        let result = answer.json()["result"].take();
        assert_ne!(result["isError"], true, "{id}: {result}");
        let request_id = answer.header("x-request-id").unwrap().to_owned();
        (result["structuredContent"].clone(), request_id)
    }

    /// Calls an operation and checks its audit entry; returns its document and the target in the entry.
    async fn call_and_check_entry(
        &mut self,
        id: &'static str,
        rest: RestRequest,
        given: Value,
    ) -> (Value, Value) {
        let before = entries(&self.fixture.server, &self.workspace).await;
        let (document, request_id) = self.send_request(id, rest, given).await;
        let after = entries(&self.fixture.server, &self.workspace).await;
        let all = operations::all();
        let row = all.iter().find(|row| row.id == id).unwrap();
        if row.audit_actions.is_empty() {
            assert_eq!(after, before, "{id} only reads");
            return (document, Value::Null);
        }
        assert_eq!(after.len(), before.len() + 1, "{id} leaves one entry");
        assert_eq!(after[1..], before[..], "{id}");
        let entry = &after[0];
        let action = text(&entry["action"]);
        let acts: Vec<_> = row.audit_actions.iter().map(|act| act.as_str()).collect();
        assert!(acts.contains(&&*action), "{id}: {entry}");
        assert_eq!(entry["principal"], self.alice.id, "{id}");
        assert_eq!(entry["request_id"], request_id, "{id}");
        (document, entry["target"].clone())
    }

    /// The pages of a project; returns the id of the project.
    async fn create_pages(&mut self) -> String {
        let body = json!({ "name": "House", "workspace": "acme" });
        let rest = RestRequest(Method::POST, PROJECTS.to_owned(), body.clone());
        let (made, target) = self
            .call_and_check_entry("create_project", rest, body)
            .await;
        assert_eq!(made["id"], target);
        let project = text(&target);
        let at = format!("{PROJECTS}/{project}");
        let rest = RestRequest(
            Method::PATCH,
            at.clone(),
            json!({ "description": "Its own" }),
        );
        let given = json!({ "project_id": project, "description": "Its own" });
        let (_, target) = self
            .call_and_check_entry("update_project", rest, given)
            .await;
        assert_eq!(target, project);
        let page =
            json!({ "type": "markdown", "content": "# secret-words", "requested_slug": "room" });
        let rest = RestRequest(Method::POST, format!("{at}/frontends"), page.clone());
        let mut given = page;
        given["project_id"] = project.clone().into();
        let (room, target) = self
            .call_and_check_entry("create_frontend", rest, given)
            .await;
        assert_eq!(room["id"], target);
        let share = self
            .fixture
            .server
            .deploy(&json!({ "content": "x", "name": "hall" }))
            .await;
        let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
        let rest = RestRequest(Method::POST, format!("{at}/frontends/claim"), body.clone());
        let mut given = body;
        given["project_id"] = project.clone().into();
        let (_, target) = self.call_and_check_entry("claim_share", rest, given).await;
        assert_eq!(target, share["id"]);
        self.change_revisions(&project, &room["id"]).await;
        self.change_site(&project).await;
        // Nothing is there to be removed, so that no part has an entry of its own.
        let gone = json!([{ "slug": "secret-words", "expected_active_revision_id": null }]);
        let body = json!({ "remove_pages": gone, "message": "secret-words" });
        let rest = RestRequest(Method::POST, format!("{at}/release"), body.clone());
        let mut given = body;
        given["project_id"] = project.clone().into();
        let (_, target) = self
            .call_and_check_entry("release_project", rest, given)
            .await;
        assert_eq!(target, project);
        let rest = RestRequest(Method::DELETE, format!("{at}/frontends/hall"), Value::Null);
        let given = json!({ "project_id": project, "slug": "hall" });
        let (_, target) = self
            .call_and_check_entry("delete_frontend", rest, given)
            .await;
        assert_eq!(target, share["id"]);
        project
    }

    async fn change_revisions(&mut self, project: &str, frontend: &Value) {
        let room = format!("{PROJECTS}/{project}/frontends/room");
        let at = json!({ "project_id": project, "slug": "room" });
        let with = |more: &Value| {
            let mut given = at.clone();
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let body = json!({ "content": "# Two" });
        let rest = RestRequest(Method::PUT, room.clone(), body.clone());
        let (published, target) = self
            .call_and_check_entry("republish_frontend", rest, with(&body))
            .await;
        assert_eq!(target, *frontend);
        let live = &published["active_revision_id"];
        let body = json!({ "base_revision_id": live, "content": "# Three" });
        let rest = RestRequest(Method::POST, format!("{room}/revisions"), body.clone());
        let (made, target) = self
            .call_and_check_entry("create_revision", rest, with(&body))
            .await;
        let draft = &made["revision"]["revision_id"];
        assert_eq!(target, *draft);
        let body = json!({ "revision_id": draft, "expected_active_revision_id": live });
        let rest = RestRequest(Method::POST, format!("{room}/promote"), body.clone());
        let (_, target) = self
            .call_and_check_entry("promote_revision", rest, with(&body))
            .await;
        assert_eq!(target, *draft);
        let body = json!({ "revision_id": live, "expected_active_revision_id": draft });
        let rest = RestRequest(Method::POST, format!("{room}/rollback"), body.clone());
        let (_, target) = self
            .call_and_check_entry("rollback_revision", rest, with(&body))
            .await;
        assert_eq!(target, *live);
        let path = format!("{room}/revisions/{}", text(draft));
        let rest = RestRequest(Method::DELETE, path, Value::Null);
        let given = with(&json!({ "revision_id": draft }));
        let (_, target) = self
            .call_and_check_entry("delete_revision", rest, given)
            .await;
        assert_eq!(target, *draft);
        for (id, below) in [
            ("list_frontends", "/.."),
            ("get_frontend", ""),
            ("get_content", "/content"),
            ("list_revisions", "/revisions"),
            ("list_releases", "/releases"),
        ] {
            let path = match below {
                "/.." => format!("{PROJECTS}/{project}/frontends"),
                below => format!("{room}{below}"),
            };
            let given = match below {
                "/.." => json!({ "project_id": project }),
                _ => at.clone(),
            };
            self.call_and_check_entry(id, RestRequest(Method::GET, path, Value::Null), given)
                .await;
        }
        let path = format!("{room}/revisions/{}", text(live));
        let rest = RestRequest(Method::GET, path, Value::Null);
        let given = with(&json!({ "revision_id": live }));
        self.call_and_check_entry("get_revision", rest, given).await;
    }

    /// A site, its files, and what is sent ahead of it, which leaves nothing.
    async fn change_site(&mut self, project: &str) {
        let at = format!("{PROJECTS}/{project}");
        let file = "secret-words";
        let digest = Digest::of(file.as_bytes());
        let path = format!("{at}/blobs/{digest}");
        let rest = RestRequest(Method::PUT, path, file.into());
        self.call_and_check_entry("put_blob", rest, Value::Null)
            .await;
        let site = json!({
            "type": "site", "requested_slug": "garden",
            "files": { "a.txt": { "sha256": digest.to_string(), "size": file.len() } },
        });
        let rest = RestRequest(Method::POST, format!("{at}/frontends"), site.clone());
        let mut given = site;
        given["project_id"] = project.into();
        let (_, garden) = self
            .call_and_check_entry("create_frontend", rest, given)
            .await;
        let files = format!("{at}/frontends/garden/files");
        for (id, method) in [
            ("put_file", Method::PUT),
            ("get_file", Method::GET),
            ("delete_file", Method::DELETE),
        ] {
            let rest = RestRequest(method, format!("{files}/b.txt"), file.into());
            let given = json!({ "project_id": project, "slug": "garden", "path": "b.txt" });
            let (_, target) = self.call_and_check_entry(id, rest, given).await;
            assert!(target.is_null() || target == garden, "{id}: {target}");
        }
        let path = format!("{at}/frontends/garden/archive");
        let rest = RestRequest(Method::GET, path, Value::Null);
        self.call_and_check_entry("get_archive", rest, Value::Null)
            .await;
    }

    async fn change_backend(&mut self, project: &str) {
        let at = format!("{PROJECTS}/{project}/backend");
        let with = |more: Value| {
            let mut given = json!({ "project_id": project });
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let body = json!({ "ddl": "CREATE TABLE t (n)" });
        let rest = RestRequest(Method::POST, at.clone(), body.clone());
        let (made, id) = self
            .call_and_check_entry("create_backend", rest, with(body))
            .await;
        assert_eq!(made["id"], id);
        for body in [
            json!({ "ddl": "CREATE TABLE u (n)", "note": "secret-words" }),
            json!({ "realtime": true }),
            json!({ "agents": true }),
        ] {
            let rest = RestRequest(Method::PATCH, at.clone(), body.clone());
            let (_, target) = self
                .call_and_check_entry("update_backend", rest, with(body))
                .await;
            assert_eq!(target, id);
        }
        let body = json!({ "actions": [{ "name": "one", "sql": "SELECT 'secret-words' AS one" }] });
        let rest = RestRequest(Method::PUT, format!("{at}/actions"), body.clone());
        let (_, target) = self
            .call_and_check_entry("define_actions", rest, with(body))
            .await;
        assert_eq!(target, id);
        self.change_action(&at, project, &id).await;
        self.delete_file(&at, project, &id).await;
        for (id, below, more) in [
            ("get_backend", "", json!({})),
            ("list_actions", "/actions", json!({})),
            ("list_backend_history", "/history", json!({})),
            ("export_backend", "/export", json!({})),
            ("list_rooms", "/rooms", json!({})),
        ] {
            let rest = RestRequest(Method::GET, format!("{at}{below}"), Value::Null);
            self.call_and_check_entry(id, rest, with(more)).await;
        }
        let body = json!({ "sql": "INSERT INTO t (n) VALUES ('secret-words')" });
        let rest = RestRequest(Method::POST, format!("{at}/query"), body.clone());
        let (_, target) = self
            .call_and_check_entry("query_backend", rest, with(body))
            .await;
        assert_eq!(target, id);
        let put = json!({ "actions": [{ "name": "put", "sql": "INSERT INTO t (n) VALUES (1)" }] });
        let rest = RestRequest(Method::PUT, format!("{at}/actions"), put.clone());
        self.call_and_check_entry("define_actions", rest, with(put))
            .await;
        let body = json!({ "ops": [{ "action": "put" }] });
        let rest = RestRequest(Method::POST, format!("{at}/batch"), body.clone());
        let (_, target) = self
            .call_and_check_entry("call_actions", rest, with(body))
            .await;
        assert_eq!(target, id);
        let said = json!({ "type": "said", "data": 1 });
        let rest = RestRequest(
            Method::POST,
            format!("{at}/rooms/lobby/messages"),
            said.clone(),
        );
        let mut given = with(said);
        given["room"] = "lobby".into();
        self.call_and_check_entry("send_to_room", rest, given).await;
        self.fixture.server.advance(1);
        let body = json!({ "at": "2026-11-20T12:00:01.000Z" });
        let rest = RestRequest(Method::POST, format!("{at}/restore"), body.clone());
        let (_, target) = self
            .call_and_check_entry("restore_backend", rest, with(body))
            .await;
        assert_eq!(target, id);
        let rest = RestRequest(Method::DELETE, at, Value::Null);
        let (_, target) = self
            .call_and_check_entry("delete_backend", rest, with(json!({})))
            .await;
        assert_eq!(target, id);
    }

    /// Changes the action `one`, puts it back, and ends it.
    async fn change_action(&mut self, at: &str, project: &str, backend: &Value) {
        let given = |more: Value| {
            let mut given = json!({ "project_id": project, "name": "one" });
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let of_action = format!("{}/one", text(backend));
        let body = json!({ "actions": [{ "name": "one", "sql": "SELECT 2 AS one" }] });
        let path = format!("{at}/actions");
        let mut arguments = body.clone();
        arguments["project_id"] = project.into();
        self.call_and_check_entry(
            "define_actions",
            RestRequest(Method::PUT, path.clone(), body),
            arguments,
        )
        .await;
        let rest = RestRequest(Method::GET, format!("{path}/one/versions"), Value::Null);
        self.call_and_check_entry("list_action_versions", rest, given(json!({})))
            .await;
        let body = json!({ "version": 1 });
        let rest = RestRequest(Method::POST, format!("{path}/one/rollback"), body.clone());
        let (_, target) = self
            .call_and_check_entry("rollback_action", rest, given(body))
            .await;
        assert_eq!(target, *of_action);
        let rest = RestRequest(Method::DELETE, format!("{path}/one"), Value::Null);
        let (_, target) = self
            .call_and_check_entry("delete_action", rest, given(json!({})))
            .await;
        assert_eq!(target, *of_action);
    }

    async fn create_prices(&mut self, project: &str) {
        let at = format!("{PROJECTS}/{project}/payments");
        let with = |more: Value| {
            let mut given = json!({ "project_id": project });
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let body = json!({ "product_name": "secret-words", "label": "secret-words", "amount": 500, "currency": "usd" });
        let rest = RestRequest(Method::POST, format!("{at}/catalog"), body.clone());
        let (made, target) = self
            .call_and_check_entry("add_price", rest, with(body))
            .await;
        assert_eq!(made["id"], target);
        for (id, below) in [("list_catalog", "/catalog"), ("list_sessions", "/sessions")] {
            let rest = RestRequest(Method::GET, format!("{at}{below}"), Value::Null);
            self.call_and_check_entry(id, rest, with(json!({}))).await;
        }
        let path = format!("{at}/catalog/{}", text(&target));
        let rest = RestRequest(Method::DELETE, path, Value::Null);
        let given = with(json!({ "price_id": target }));
        let (_, taken) = self
            .call_and_check_entry("deactivate_price", rest, given)
            .await;
        assert_eq!(taken, target);
    }

    async fn change_visitors(&mut self, project: &str) {
        let control = &self.fixture.server.server().app().control;
        let of = project.to_owned();
        let signed_in = control.write(move |tx| {
            tx.execute(
                "INSERT INTO visitors (id, project_id, issuer, subject, provider, email, created_at, last_seen_at)
                 VALUES ('usr_visitor', ?1, 'https://issuer.example', 'secret-words', 'dev', 'secret-words', 0, 0)",
                [of],
            )?;
            Ok::<_, svc::control::Error>(())
        });
        signed_in.await.unwrap();
        let at = format!("{PROJECTS}/{project}/visitors");
        let given = json!({ "project_id": project });
        let rest = RestRequest(Method::GET, at.clone(), Value::Null);
        self.call_and_check_entry("list_visitors", rest, given)
            .await;
        let rest = RestRequest(Method::DELETE, format!("{at}/usr_visitor"), Value::Null);
        let given = json!({ "project_id": project, "user_id": "usr_visitor" });
        let (_, target) = self
            .call_and_check_entry("forget_visitor", rest, given)
            .await;
        assert_eq!(target, "usr_visitor");
    }

    async fn change_domains(&mut self, project: &str) {
        let (name, at) = ("www.shop.com", format!("{PROJECTS}/{project}/domains"));
        let given = json!({ "project_id": project, "name": name });
        let rest = RestRequest(Method::POST, at.clone(), json!({ "name": name }));
        let added = self.call_and_check_entry("add_domain", rest, given.clone());
        let (added, target) = added.await;
        assert_eq!(target, name);
        self.dns.set_record(&added["records"][0]);
        let rest = RestRequest(Method::GET, at.clone(), Value::Null);
        let all = json!({ "project_id": project });
        self.call_and_check_entry("list_domains", rest, all).await;
        let one = format!("{at}/{name}");
        let rest = RestRequest(Method::GET, one.clone(), Value::Null);
        let read = self.call_and_check_entry("get_domain", rest, Value::Null);
        read.await;
        let verify = format!("{one}/verify");
        let redirect = json!({ "redirect_to": "house-acme.localhost" });
        for (id, method, path, body) in [
            ("verify_domain", Method::POST, verify, json!({})),
            ("update_domain", Method::PATCH, one.clone(), redirect),
            ("remove_domain", Method::DELETE, one.clone(), Value::Null),
        ] {
            let rest = RestRequest(method, path, body);
            let changed = self.call_and_check_entry(id, rest, given.clone());
            assert_eq!(changed.await.1, name, "{id}");
        }
    }

    async fn change_workspace(&mut self) {
        let at = format!("{WORKSPACES}/acme");
        let bob = self.fixture.user("bob").await.id;
        let with = |more: Value| {
            let mut given = json!({ "workspace": "acme" });
            let more = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more);
            given
        };
        let body = json!({ "display_name": "secret-words" });
        let rest = RestRequest(Method::PATCH, at.clone(), body.clone());
        let (_, target) = self
            .call_and_check_entry("update_workspace", rest, with(body))
            .await;
        assert_eq!(target, self.workspace);
        let body = json!({ "user_id": bob, "role": "viewer" });
        let rest = RestRequest(Method::POST, format!("{at}/members"), body.clone());
        let (_, target) = self
            .call_and_check_entry("add_member", rest, with(body))
            .await;
        assert_eq!(target, bob);
        let member = format!("{at}/members/{bob}");
        let rest = RestRequest(Method::PATCH, member.clone(), json!({ "role": "editor" }));
        let given = with(json!({ "user_id": bob, "role": "editor" }));
        let (_, target) = self.call_and_check_entry("set_role", rest, given).await;
        assert_eq!(target, bob);
        let rest = RestRequest(Method::DELETE, member, Value::Null);
        let given = with(json!({ "user_id": bob }));
        let (_, target) = self
            .call_and_check_entry("remove_member", rest, given)
            .await;
        assert_eq!(target, bob);
        let body = json!({ "note": "secret-words" });
        let rest = RestRequest(Method::POST, format!("{at}/keys"), body);
        let (made, target) = self
            .call_and_check_entry("create_key", rest, Value::Null)
            .await;
        assert_eq!(target, made["key_id"]);
        let path = format!("{at}/keys/{}", text(&target));
        let rest = RestRequest(Method::DELETE, path.clone(), Value::Null);
        let (made, target) = self
            .call_and_check_entry("revoke_key", rest, Value::Null)
            .await;
        assert_eq!(
            (made, path),
            (Value::Null, format!("{at}/keys/{}", text(&target)))
        );
        for (id, path) in [
            ("get_me", "/api/v1/me".to_owned()),
            ("list_workspaces", WORKSPACES.to_owned()),
            ("get_workspace", at.clone()),
            ("list_members", format!("{at}/members")),
            ("list_keys", format!("{at}/keys")),
            ("list_audit", format!("{at}/audit")),
            ("list_projects", PROJECTS.to_owned()),
        ] {
            let given = match id {
                "list_workspaces" | "list_projects" => json!({}),
                _ => with(json!({})),
            };
            self.call_and_check_entry(id, RestRequest(Method::GET, path, Value::Null), given)
                .await;
        }
    }

    async fn delete_everything(&mut self, project: &str) {
        let path = format!("{PROJECTS}/{project}");
        let given = json!({ "project_id": project });
        let rest = RestRequest(Method::GET, path.clone(), Value::Null);
        self.call_and_check_entry("get_project", rest, given.clone())
            .await;
        let rest = RestRequest(Method::DELETE, path, Value::Null);
        let (_, target) = self
            .call_and_check_entry("delete_project", rest, given)
            .await;
        assert_eq!(target, project);
        let rest = RestRequest(Method::DELETE, format!("{WORKSPACES}/acme"), Value::Null);
        let given = json!({ "workspace": "acme" });
        let (_, target) = self
            .call_and_check_entry("delete_workspace", rest, given)
            .await;
        assert_eq!(target, self.workspace);
    }
}
