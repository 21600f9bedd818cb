//! Operations on visitors' files.

use super::*;

impl OperationsWalk {
    /// Lists, reads and deletes a file that a visitor has uploaded.
    pub(super) async fn delete_file(&mut self, at: &str, project: &str, backend: &Value) {
        let take = json!({ "actions": [{
            "name": "take", "sql": "INSERT INTO t (n) VALUES (:svc_file)", "files": { "anonymous": true },
        }] });
        let rest = RestRequest(Method::PUT, format!("{at}/actions"), take.clone());
        let mut given = take;
        given["project_id"] = project.into();
        self.call_and_check_entry("define_actions", rest, given)
            .await;
        let request = self.fixture.server.post("/room/api/files/take");
        let made = request.body("secret-words").answer().await.expect(201);
        let file = text(&made.json()["file"]["id"]);
        let files = format!("{PROJECTS}/{project}/files");
        let rest = RestRequest(Method::GET, files.clone(), Value::Null);
        let given = json!({ "project_id": project });
        self.call_and_check_entry("list_files", rest, given).await;
        let path = format!("{files}/{file}");
        let rest = RestRequest(Method::GET, path.clone(), Value::Null);
        self.call_and_check_entry("get_file_of_visitor", rest, Value::Null)
            .await;
        let rest = RestRequest(Method::DELETE, path, Value::Null);
        let given = json!({ "project_id": project, "file_id": file });
        let (_, target) = self
            .call_and_check_entry("delete_file_of_visitor", rest, given)
            .await;
        assert_eq!(target, format!("{}/{file}", text(backend)));
    }
}
