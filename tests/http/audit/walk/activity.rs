//! Operations that tell what the pages of a project do.

use super::*;

impl OperationsWalk {
    /// Reads the counts and the log.
    pub(super) async fn read_activity(&mut self, project: &str) {
        for (id, path) in [("get_stats", "stats"), ("list_log", "log")] {
            let path = format!("{PROJECTS}/{project}/{path}");
            let rest = RestRequest(Method::GET, path, Value::Null);
            let given = json!({ "project_id": project });
            self.call_and_check_entry(id, rest, given).await;
        }
    }
}
