//! More steps of the parity test: who has signed in on a project's pages.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::{PROJECTS, Steps};

impl Steps {
    /// The visitors of a project, of whom there are none.
    pub(super) fn visitors(&mut self) {
        let all = format!("{PROJECTS}/$project/visitors");
        for (limit, status) in [(1, 200), (200, 200), (0, 400), (201, 400)] {
            let arguments =
                json!({ "action": "visitors", "project_id": "$project", "limit": limit });
            let path = format!("{all}?limit={limit}");
            self.add(
                "manage_project",
                arguments,
                Method::GET,
                path,
                Value::Null,
                status,
            );
        }
        let user = "usr_7Jp2mQ0aZc91LxTvBnRk4s";
        for (project, status) in [("$project", 204), ("$free", 403)] {
            let arguments =
                json!({ "action": "forget_visitor", "project_id": project, "user_id": user });
            let path = format!("{PROJECTS}/{project}/visitors/{user}");
            self.add(
                "manage_project",
                arguments,
                Method::DELETE,
                path,
                Value::Null,
                status,
            );
        }
    }
}
