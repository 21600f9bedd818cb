//! Death while a share is deleted or claimed: it is gone, or a frontend, or as it was; and asking again ends well.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Process, disk};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds that lead to the points here.
pub(crate) const FAULT_GROUPS: [&str; 2] = ["share", "claim"];

async fn send(
    process: &Process,
    method: Method,
    path: &str,
    body: Value,
    token: &str,
) -> Option<(u16, Value)> {
    let request = process.client().request(method, process.url(path));
    let answer = request.bearer_auth(token).json(&body).send().await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.bytes().await.ok()?;
    Some((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

async fn delete(process: &Process, share: &Value) -> Option<u16> {
    let path = format!("/api/v1/deploy/{}", text(&share["id"]));
    let token = text(&share["delete_token"]);
    let answer = send(process, Method::DELETE, &path, Value::Null, &token).await;
    answer.map(|(status, _)| status)
}

#[tokio::test]
async fn whatever_the_point_of_death_a_share_is_whole_or_gone() {
    let mut seen = 0;
    for point in fault_points()
        .into_iter()
        .filter(|p| FAULT_GROUPS.contains(&fault_group(p)))
    {
        seen += 1;
        let data = TempDir::new().unwrap();
        let create = ["namespace", "create", "acme", "--json"];
        let made = svc().run(data.path(), &create).await.json();
        let credential = text(&made["credential"]);
        let process = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        let deploy = async |body: Value| {
            let answer = send(&process, Method::POST, "/api/v1/deploy", body, "").await;
            answer.expect("it lives still").1
        };
        let share = deploy(json!({ "content": "# One", "type": "markdown", "name": "room" })).await;
        let once =
            deploy(json!({ "content": "burning-words", "name": "once", "one_time": true })).await;
        let project = json!({ "name": "House" });
        let made = send(
            &process,
            Method::POST,
            "/api/v1/projects",
            project,
            &credential,
        )
        .await;
        let project = text(&made.unwrap().1["id"]);
        let claim = format!("/api/v1/projects/{project}/frontends/claim");
        let body = json!({ "id": share["id"], "delete_token": share["delete_token"] });
        // Its answer may have left before the end, which goes on behind it.
        match fault_group(&point) {
            "share" => drop(delete(&process, &once).await),
            _ => drop(send(&process, Method::POST, &claim, body.clone(), &credential).await),
        }
        let (status, _) = process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let process = svc().serve(data.path(), &[]).await;
        let frontends = format!("/{project}/frontends");
        let site = OwnerProcess {
            process,
            credential: &credential,
        };
        assert_eq!(delete(&site.process, &once).await, Some(204), "{point}");
        assert_eq!(site.process.get("/once").await.status, 404, "{point}");
        assert_eq!(disk::holding(data.path(), "burning-words"), [] as [&str; 0]);
        let room = site.process.get("/room").await.expect(200);
        let (_, list) = site.get(&frontends).await;
        let claimed = list["frontends"].as_array().unwrap().len() == 1;
        assert_eq!(claimed, point == "claim.committed", "{point}: {list}");
        assert_eq!(room.text().contains("/_svc/runtime/"), claimed, "{point}");
        let again = send(&site.process, Method::POST, &claim, body, &credential).await;
        let expected = if claimed { 404 } else { 201 };
        assert_eq!(again.unwrap().0, expected, "{point}");
        assert_eq!(
            site.get(&frontends).await.1["frontends"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        let found = svc().run(data.path(), &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]), "{point}");
        site.process.kill().await;
    }
    assert_eq!(seen, 3);
}
