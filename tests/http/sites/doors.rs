//! Requests about sites: roles, repeated requests, limits, and what all answers carry.

use http::Method;
use serde_json::{Value, json};
use svc_tests::ReadAnswer;

use super::{SiteFixture, sha256, texts};
use crate::members::MembersFixture;
use crate::owner::text;

#[tokio::test]
async fn viewers_read_and_editors_change() {
    let fixture = MembersFixture::new().await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let eve = fixture.user("eve").await;
    alice.workspace(&fixture, "acme").await;
    alice.add_member(&fixture, "acme", &bob, "viewer").await;
    let project = alice.owner.project(&fixture.server, "House").await;
    let at = format!("/api/v1/projects/{project}");
    let site = json!({ "type": "site", "files": texts(&[("a", "a"), ("b", "b")]), "requested_slug": "site" });
    let made = alice
        .send(
            &fixture,
            Method::POST,
            &format!("{at}/frontends"),
            site.clone(),
        )
        .await;
    made.expect(201);
    let revisions = format!("{at}/frontends/site/revisions");
    let listed = alice.get(&fixture, &revisions).await.expect(200).json();
    let active = text(&listed["active_revision_id"]);
    let draft = json!({ "base_revision_id": active, "changes": { "delete": ["b"] } });
    let drafted = alice
        .send(&fixture, Method::POST, &revisions, draft.clone())
        .await;
    let drafted = text(&drafted.expect(200).json()["revision"]["revision_id"]);
    let (file, all) = (json!("x"), json!({ "files": texts(&[("a", "a")]) }));
    for (method, below, body, viewer, editor) in [
        (
            Method::GET,
            "/frontends/site/content".to_owned(),
            None,
            200,
            200,
        ),
        (
            Method::GET,
            "/frontends/site/files/a".to_owned(),
            None,
            200,
            200,
        ),
        (
            Method::GET,
            "/frontends/site/archive".to_owned(),
            None,
            200,
            200,
        ),
        (Method::POST, "/frontends".to_owned(), Some(&site), 403, 201),
        (
            Method::POST,
            "/frontends/site/revisions".to_owned(),
            Some(&draft),
            403,
            200,
        ),
        (
            Method::PUT,
            "/frontends/site".to_owned(),
            Some(&all),
            403,
            200,
        ),
        (
            Method::PUT,
            format!("/blobs/{}", sha256(b"\"x\"")),
            Some(&file),
            403,
            204,
        ),
        (
            Method::DELETE,
            format!("/frontends/site/revisions/{drafted}"),
            None,
            403,
            204,
        ),
        (
            Method::PUT,
            "/frontends/site/files/c".to_owned(),
            Some(&file),
            403,
            200,
        ),
        (
            Method::DELETE,
            "/frontends/site/files/c".to_owned(),
            None,
            403,
            200,
        ),
    ] {
        let path = format!("{at}{below}");
        for (user, expected) in [(&eve, 403), (&bob, viewer), (&alice, editor)] {
            let sent = user
                .owner
                .send_request(&fixture.server, method.clone(), &path, body)
                .await;
            assert_eq!(sent.status, expected, "{method} {path}: {}", sent.text());
        }
        let nobody = fixture.server.request(method.clone(), &path);
        let nobody = match body {
            Some(body) => nobody.json(body),
            None => nobody,
        };
        nobody.answer().await.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_repeated_request_does_nothing_more() {
    let fixture = SiteFixture::with_files(&[("index.html", "one")]).await;
    let base = fixture.active().await;
    let site = json!({ "type": "site", "files": texts(&[("a", "a")]) });
    let draft = json!({ "base_revision_id": base, "changes": { "set": { "b": { "text": "b" } } } });
    let other = json!({ "base_revision_id": base, "changes": { "delete": ["index.html"] } });
    let at = format!("/api/v1/projects/{}", fixture.project);
    let another = json!({ "type": "site", "files": texts(&[("a", "other")]) });
    for (path, body, changed, status) in [
        (format!("{at}/frontends"), &site, &another, 201),
        (
            format!("{at}/frontends/site/revisions"),
            &draft,
            &other,
            200,
        ),
        ("/api/v1/deploy".to_owned(), &site, &another, 201),
    ] {
        let send = async |body: &Value| {
            let request = fixture.owner.request(&fixture.server, Method::POST, &path);
            let request = request.header("idempotency-key", "k").json(body);
            request.answer().await
        };
        let first = send(body).await.expect(status);
        let stored = fixture.server.snapshot();
        let again = send(body).await.expect(status);
        assert_eq!(again.header("idempotency-replayed"), Some("true"), "{path}");
        assert_eq!(again.body, first.body, "{path}");
        send(changed).await.problem(409, "idempotency_conflict");
        assert_eq!(fixture.server.snapshot(), stored, "{path}");
    }
}

#[tokio::test]
async fn a_refused_digest_is_asked_for_again_with_the_same_key() {
    let fixture = SiteFixture::empty(svc_tests::TestServer::start().await).await;
    let site = json!({ "type": "site", "files": { "a": { "sha256": sha256(b"a") } } });
    let path = format!("/api/v1/projects/{}/frontends", fixture.project);
    let send = async || {
        let request = fixture.owner.request(&fixture.server, Method::POST, &path);
        let request = request.header("idempotency-key", "k").json(&site);
        request.answer().await
    };
    send().await.problem(409, "files_missing");
    fixture.put(b"a").await;
    let made = send().await.expect(201);
    assert_eq!(made.header("idempotency-replayed"), None);
}

#[tokio::test]
async fn files_that_are_sent_say_how_many_are_left() {
    let fixture = SiteFixture::empty(svc_tests::TestServer::start().await).await;
    let sent = super::put_as(
        &fixture.owner,
        &fixture.server,
        &fixture.project,
        (&sha256(b"x"), b"x".to_vec()),
    )
    .await
    .expect(204);
    for name in ["ratelimit", "ratelimit-policy"] {
        let said = sent.header(name).unwrap();
        assert!(said.contains("blob"), "{name}: {said}");
    }
}

#[tokio::test]
async fn every_answer_says_how_large_a_site_is_and_what_it_holds() {
    let fixture = SiteFixture::with_files(&[("index.html", "one"), ("a", "aa")]).await;
    let size = json!({ "files": 2, "bytes": 5 });
    let frontends = format!("/{}/frontends", fixture.project);
    let listed = fixture.owner.get(&fixture.server, &frontends).await;
    let listed = listed.expect(200).json();
    let content = fixture.send(Method::GET, "/content", None).await.json();
    let digest = &content["content_sha256"];
    let frontend = fixture.send(Method::GET, "", None).await.json();
    let revisions = fixture.send(Method::GET, "/revisions", None).await.json();
    let id = text(&revisions["active_revision_id"]);
    let one = fixture
        .send(Method::GET, &format!("/revisions/{id}"), None)
        .await
        .json();
    let again = json!({ "files": texts(&[("index.html", "one"), ("a", "aa")]) });
    let published = fixture.send(Method::PUT, "", Some(&again)).await;
    let published = published.expect(200).json();
    let draft = json!({ "changes": { "set": { "b": { "text": "bb" } } } });
    let draft = fixture.draft(&draft).await["revision"].clone();
    let promoted = fixture.release("promote", &draft["revision_id"]).await;
    let promoted = promoted.expect(200).json();
    for (answer, size) in [
        (&listed["frontends"][0], &size),
        (&frontend, &size),
        (&revisions["revisions"][0], &size),
        (&one, &size),
        (&published, &size),
    ] {
        assert_eq!(
            (&answer["site"], &answer["content_sha256"]),
            (size, digest),
            "{answer}"
        );
    }
    let larger = json!({ "files": 3, "bytes": 7 });
    for answer in [&draft, &promoted["frontend"], &promoted["revision"]] {
        assert_eq!(answer["site"], larger, "{answer}");
        assert_eq!(
            answer["content_sha256"], draft["content_sha256"],
            "{answer}"
        );
    }
    let known = |digest: &Value| format!("/content?known_content_sha256={}", text(digest));
    let new = known(&draft["content_sha256"]);
    let unchanged = fixture.send(Method::GET, &new, None).await.json();
    let expected = json!({ "unchanged": true, "content_sha256": draft["content_sha256"] });
    assert_eq!(unchanged, expected);
    let old = format!("{}&revision_id={id}", known(digest));
    let unchanged = fixture.send(Method::GET, &old, None).await.json();
    assert_eq!(unchanged["unchanged"], true);
    let changed = fixture.send(Method::GET, &known(digest), None).await.json();
    assert_eq!(changed["files"].as_object().unwrap().len(), 3);
    // A page has no files to count.
    fixture
        .owner
        .frontend(&fixture.server, &fixture.project, "room")
        .await;
    let room = format!("{frontends}/room");
    let room = fixture.owner.get(&fixture.server, &room).await.json();
    assert_eq!(room["site"], Value::Null);
}
