//! Files of other projects: a digest opens none of them, and does not tell whether anybody has them.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::{Answer, TestServer};

use super::{SiteFixture, put, put_as, sha256, texts};
use crate::owner::Owner;

/// Returns the parts of an answer that a client sees, without a digest that is in it.
fn seen(answer: &Answer, digest: &str) -> (u16, HeaderMap, String) {
    let body = answer.text().replace(digest, "…");
    let mut headers = answer.lasting_headers();
    // It counts the requests.
    headers.remove("ratelimit");
    (answer.status, headers, body)
}

/// Ways to name a file by its digest: methods, paths below the project, and bodies.
fn ways(base: &str, digest: &str, size: usize) -> Vec<(Method, &'static str, Value)> {
    let named = json!({ "index.html": { "text": "x" }, "theirs": { "sha256": digest } });
    let sized = json!({ "theirs": { "sha256": digest, "size": size } });
    let wrong = json!({ "theirs": { "sha256": digest, "size": size + 1 } });
    let draft = |key: &str, value: Value| {
        let mut body = json!({ "base_revision_id": base });
        body[key] = value;
        body
    };
    let mut ways = Vec::new();
    for files in [named, sized, wrong] {
        let new = json!({ "type": "site", "files": files, "requested_slug": "new" });
        ways.push((Method::POST, "frontends", new));
        let put = json!({ "files": files });
        ways.push((Method::PUT, "frontends/site", put));
        let path = "frontends/site/revisions";
        ways.push((Method::POST, path, draft("files", files.clone())));
        let changes = json!({ "set": files });
        ways.push((Method::POST, path, draft("changes", changes)));
    }
    ways
}

#[tokio::test]
async fn a_digest_of_another_project_is_as_good_as_one_of_nobody() {
    let fixture = SiteFixture::with_files(&[("index.html", "mine")]).await;
    let SiteFixture { server, owner, .. } = &fixture;
    // Another project of the same owner, another owner's, a quick share, and a page's source.
    let own = owner.project(server, "Second").await;
    let stranger = Owner::new(server, "other").await;
    let theirs = stranger.project(server, "House").await;
    let large: Vec<u8> = (0..1_500_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let mut held = vec![
        put(owner, server, &own, b"of the same owner").await,
        put(&stranger, server, &theirs, b"of a stranger").await,
        put(&stranger, server, &theirs, &large).await,
    ];
    let body = json!({ "type": "site", "files": { "a": { "text": "live bytes" } }, "requested_slug": "theirs" });
    let path = format!("/{theirs}/frontends");
    stranger.post(server, &path, &body).await.expect(201);
    held.push(sha256(b"live bytes"));
    let share = json!({ "type": "site", "files": texts(&[("a", "shared bytes")]) });
    server.deploy(&share).await;
    held.push(sha256(b"shared bytes"));
    server.deploy(&json!({ "content": "a source" })).await;
    held.push(sha256(b"a source"));
    held.push(sha256(&large[..1 << 20]));

    let base = fixture.active().await;
    let nobody = sha256(b"nobody has this");
    let send = async |method: &Method, below: &str, body: &Value| {
        let path = format!("/api/v1/projects/{}/{below}", fixture.project);
        owner
            .send_request(server, method.clone(), &path, Some(body))
            .await
    };
    let stored = server.snapshot();
    for digest in &held {
        let both = ways(&base, digest, 17)
            .into_iter()
            .zip(ways(&base, &nobody, 17));
        for ((method, below, body), (_, _, other)) in both {
            let refused = send(&method, below, &body).await;
            let problem = refused.problem(409, "files_missing");
            assert_eq!(problem["missing"], json!([digest]), "{below}: {body}");
            let unknown = send(&method, below, &other).await;
            assert_eq!(
                seen(&refused, digest),
                seen(&unknown, &nobody),
                "{below}: {body}"
            );
        }
        // Only the bytes themselves prove that a project has them.
        let wrong = async |digest: &str| {
            let sent = (digest, b"other bytes".to_vec());
            put_as(owner, server, &fixture.project, sent).await
        };
        let (refused, unknown) = (wrong(digest).await, wrong(&nobody).await);
        refused.problem(400, "digest_mismatch");
        assert_eq!(seen(&refused, digest), seen(&unknown, &nobody));
        let get = async |digest: &str| {
            let path = format!("/{}/frontends/site/files/{digest}", fixture.project);
            owner.get(server, &path).await
        };
        let (refused, unknown) = (get(digest).await, get(&nobody).await);
        refused.problem(404, "not_found");
        assert_eq!(seen(&refused, digest), seen(&unknown, &nobody));
    }
    assert_eq!(server.snapshot(), stored, "nothing was made");

    // Whoever sends all bytes has them, whether or not another does.
    let sent = [
        (b"of a stranger".to_vec(), "of a stranger"),
        (b"nobody has this".to_vec(), "nobody has this"),
    ];
    let mut answers = Vec::new();
    for (bytes, name) in sent {
        let digest = sha256(&bytes);
        let sent = (digest.as_str(), bytes);
        let answer = put_as(owner, server, &fixture.project, sent).await;
        answers.push(seen(&answer, &digest));
        let files = json!({ "index.html": { "sha256": digest } });
        let body = json!({ "files": files });
        let live = send(&Method::PUT, "frontends/site", &body).await;
        live.expect(200);
        assert_eq!(fixture.read("/site/").await, name);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 204);
}

/// A file that has ended is nobody's, and so is one that waits in a project that has ended.
#[tokio::test]
async fn what_a_project_had_it_has_no_more() {
    let fixture = SiteFixture::empty(TestServer::start().await).await;
    let digest = fixture.put(b"waited").await;
    fixture.server.advance(86_401);
    super::collected_objects(&fixture.server).await;
    let site = json!({ "type": "site", "files": { "a": { "sha256": digest } } });
    let refused = fixture.create(&site).await;
    refused.problem(409, "files_missing");
}
