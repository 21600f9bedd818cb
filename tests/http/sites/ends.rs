//! Ends of revisions and of sites: their files go once nothing names them, and not before.

use http::Method;
use serde_json::json;
use svc_tests::TestServer;

use super::{SiteFixture, collected_objects, texts};
use crate::owner::text;
use crate::svc;

/// Returns the number of objects once all that waits for a publication has waited.
async fn settled_objects(fixture: &SiteFixture) -> usize {
    fixture.server.advance(86_400);
    collected_objects(&fixture.server).await
}

#[tokio::test]
async fn files_stay_as_long_as_a_revision_names_them() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let before = settled_objects(&fixture).await;
    let shared = fixture.put(b"shared").await;
    let site = |own: &str| json!({ "a": { "sha256": shared }, "b": { "text": own }, "c": { "text": own } });
    let body = json!({ "type": "site", "files": site("one"), "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    // Both forms of the manifest, and two distinct files.
    assert_eq!(settled_objects(&fixture).await, before + 4);
    let first = fixture.active().await;
    let next = json!({ "files": site("two") });
    fixture.send(Method::PUT, "", Some(&next)).await.expect(200);
    assert_eq!(settled_objects(&fixture).await, before + 7);
    let live = fixture.active().await;
    let delete = async |id: &str| {
        let path = format!("/revisions/{id}");
        fixture.send(Method::DELETE, &path, None).await
    };
    let refused = delete(&live).await.problem(409, "revision_conflict");
    assert_eq!(refused["active_revision_id"], live);
    delete(&first).await.expect(204);
    delete(&first).await.expect(204);
    delete("x").await.expect(204);
    assert_eq!(settled_objects(&fixture).await, before + 4);
    assert_eq!(fixture.read("/site/a").await, "shared");
    assert_eq!(fixture.read("/site/b").await, "two");
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
    assert_eq!(check["leftovers"], json!([]));
    fixture.send(Method::DELETE, "", None).await.expect(204);
    assert_eq!(settled_objects(&fixture).await, before);
}

#[tokio::test]
async fn two_projects_share_objects_and_not_their_ends() {
    let fixture = SiteFixture::with_files(&[("index.html", "both"), ("own", "mine")]).await;
    let large = vec![1; 3_000_000];
    let digest = fixture.put(&large).await;
    let add = json!({ "changes": { "set": { "large": { "sha256": digest } } } });
    let draft = fixture.draft(&add).await;
    fixture
        .release("promote", &draft["revision"]["revision_id"])
        .await
        .expect(200);
    let other = fixture.owner.project(&fixture.server, "Other").await;
    super::put(&fixture.owner, &fixture.server, &other, &large).await;
    let body = json!({ "type": "site", "files": { "large": { "sha256": digest } }, "requested_slug": "other" });
    let path = format!("/{other}/frontends");
    fixture
        .owner
        .post(&fixture.server, &path, &body)
        .await
        .expect(201);
    settled_objects(&fixture).await;
    fixture
        .owner
        .delete(&fixture.server, &format!("/{other}"))
        .await
        .expect(204);
    settled_objects(&fixture).await;
    assert_eq!(
        fixture.get("/site/large").await.expect(200).body.len(),
        3_000_000
    );
    let check = fixture
        .server
        .command(&svc(), &["check", "--json"])
        .await
        .json();
    assert_eq!(check["errors"], json!([]));
}

#[tokio::test]
async fn drafts_that_were_never_live_end() {
    let server = TestServer::builder().limits(|limits| limits.draft_seconds = 1_000);
    let fixture = SiteFixture::empty(server.start().await).await;
    let body = json!({ "type": "site", "files": texts(&[("a", "1")]), "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    let live = fixture.active().await;
    let draft = fixture
        .draft(&json!({ "files": texts(&[("a", "2")]) }))
        .await;
    let id = text(&draft["revision"]["revision_id"]);
    let there = async || {
        fixture
            .server
            .server()
            .app()
            .revisions
            .end_old_drafts()
            .await
            .unwrap();
        let path = format!("/revisions/{id}");
        fixture.send(Method::GET, &path, None).await.status
    };
    fixture.server.advance(999);
    assert_eq!(there().await, 200);
    fixture.server.advance(1);
    assert_eq!(there().await, 404);
    assert_eq!(fixture.active().await, live);
}

#[tokio::test]
async fn a_draft_that_is_asked_for_again_is_kept_as_long_as_a_new_one() {
    let server = TestServer::builder().limits(|limits| limits.draft_seconds = 1_000);
    let fixture = SiteFixture::empty(server.start().await).await;
    let body = json!({ "type": "site", "files": texts(&[("a", "1")]), "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    let draft = json!({ "files": texts(&[("a", "2")]) });
    let made = fixture.draft(&draft).await;
    let path = format!("/revisions/{}", text(&made["revision"]["revision_id"]));
    let there = async || {
        let revisions = &fixture.server.server().app().revisions;
        revisions.end_old_drafts().await.unwrap();
        fixture.send(Method::GET, &path, None).await.status
    };
    fixture.server.advance(999);
    let again = fixture.draft(&draft).await;
    assert_eq!(again["deduplicated"], true);
    fixture.server.advance(999);
    assert_eq!(there().await, 200);
    fixture.server.advance(1);
    assert_eq!(there().await, 404);
}

#[tokio::test]
async fn a_revision_of_a_page_is_deleted_too() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    fixture
        .owner
        .frontend(&fixture.server, &fixture.project, "site")
        .await;
    let draft = fixture.draft(&json!({ "content": "# Two" })).await;
    let path = format!("/revisions/{}", text(&draft["revision"]["revision_id"]));
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    fixture
        .send(Method::GET, &path, None)
        .await
        .problem(404, "not_found");
    let preview = text(&draft["preview_url"]);
    let preview = &preview[preview.find("/_preview/").unwrap()..];
    assert_eq!(fixture.get(preview).await.status, 404);
}

#[tokio::test]
async fn a_revision_that_ends_has_a_sweep_under_way_begin_anew() {
    let fixture = SiteFixture::with_files(&[("a", "one")]).await;
    let first = fixture.active().await;
    super::publish(&fixture, &[("a", "two")]).await.expect(200);
    let files = async || {
        let project = fixture.project.clone();
        let read = fixture.server.server().app().control.read(move |c| {
            let sql = "SELECT version, is_due FROM file_owners WHERE owner_id = ?1";
            c.query_row(sql, [project], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?))
            })
        });
        read.await.unwrap()
    };
    // A sweep ends nothing, and takes no mark away, once the version is another one than it has begun with.
    let (begun, _) = files().await;
    let path = format!("/revisions/{first}");
    fixture.send(Method::DELETE, &path, None).await.expect(204);
    assert!(files().await.0 > begun);
    fixture.server.server().app().files.sweep().await.unwrap();
    assert!(!files().await.1);
}
