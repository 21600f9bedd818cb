//! More steps of the parity test: workspaces and their members, by a user.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::Steps;

const ALL: &str = "/api/v1/workspaces";

impl Steps {
    /// A workspace from its making to its end.
    pub(super) fn workspaces(&mut self) {
        let (get, post, patch) = (Method::GET, Method::POST, Method::PATCH);
        for (body, status) in [
            (json!({ "display_name": "Tools", "slug": "tools" }), 201),
            (json!({ "display_name": "Tools", "slug": "tools" }), 409),
            (json!({ "display_name": "Tools" }), 201),
            (json!({ "display_name": " " }), 400),
            (json!({ "display_name": "x", "slug": "No!" }), 400),
            (json!({ "display_name": "x", "plan": "pro" }), 400),
            (json!({}), 400),
        ] {
            self.workspace("create", None, "", post.clone(), body, status);
        }
        self.workspace("list", None, "", get.clone(), json!({}), 200);
        self.add(
            "manage_workspace",
            json!({ "action": "list", "workspace": "tools" }),
            get.clone(),
            format!("{ALL}?workspace=tools"),
            Value::Null,
            400,
        );
        for (name, status) in [("tools", 200), ("zeta", 403), ("nowhere", 404)] {
            self.workspace("get", Some(name), "", get.clone(), json!({}), status);
            self.workspace(
                "members",
                Some(name),
                "/members",
                get.clone(),
                json!({}),
                status,
            );
        }
        for (body, status) in [
            (json!({ "display_name": "Workshop" }), 200),
            (json!({ "plan": "free" }), 200),
            (json!({ "plan": "pro" }), 403),
            (json!({}), 400),
            (json!({ "display_name": "" }), 400),
        ] {
            self.workspace("update", Some("tools"), "", patch.clone(), body, status);
        }
        for (body, status) in [
            (json!({ "user_id": "$bob", "role": "viewer" }), 201),
            (json!({ "user_id": "$bob", "role": "machine" }), 400),
            (json!({ "user_id": "23456789", "role": "viewer" }), 400),
            (json!({ "user_id": "usr_nobody", "role": "viewer" }), 404),
            (json!({ "user_id": "$alice", "role": "viewer" }), 409),
        ] {
            self.workspace(
                "add_member",
                Some("tools"),
                "/members",
                post.clone(),
                body,
                status,
            );
        }
        for (user, role, status) in [
            ("$bob", "admin", 200),
            ("$bob", "boss", 400),
            ("$alice", "admin", 409),
            ("usr_nobody", "admin", 404),
        ] {
            self.member(
                "set_role",
                user,
                patch.clone(),
                json!({ "role": role }),
                status,
            );
        }
        for (user, status) in [
            ("$bob", 204),
            ("$bob", 404),
            ("$alice", 409),
            ("23456789", 400),
        ] {
            self.member("remove_member", user, Method::DELETE, json!({}), status);
        }
        for (name, status) in [("tools", 204), ("tools", 404), ("zeta", 403)] {
            self.workspace("delete", Some(name), "", Method::DELETE, json!({}), status);
        }
    }

    /// An action of a workspace, whose arguments beside `workspace` are REST's body.
    fn workspace(
        &mut self,
        action: &str,
        name: Option<&str>,
        below: &str,
        method: Method,
        body: Value,
        status: u16,
    ) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        let mut path = ALL.to_owned();
        if let Some(name) = name {
            arguments["workspace"] = name.into();
            path = format!("{path}/{name}{below}");
        }
        self.add("manage_workspace", arguments, method, path, body, status);
    }

    /// An action of a member.
    fn member(&mut self, action: &str, user: &str, method: Method, body: Value, status: u16) {
        let mut arguments = body.clone();
        arguments["action"] = action.into();
        arguments["workspace"] = "tools".into();
        arguments["user_id"] = user.into();
        let path = format!("{ALL}/tools/members/{user}");
        self.add("manage_workspace", arguments, method, path, body, status);
    }
}
