//! Releases: the history of a frontend, walked as a table, and races for its release pointer.

mod races;

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer};

use crate::owner::{Owner, text};

/// A frontend with a history.
struct RevisionsFixture {
    owner: Owner,
    /// Path below `/api/v1/projects`.
    path: String,
    slug: &'static str,
}

impl RevisionsFixture {
    async fn new(server: &TestServer) -> Self {
        let owner = Owner::new(server, "acme").await;
        let project = owner.project(server, "House").await;
        owner.frontend(server, &project, "room").await;
        Self {
            owner,
            path: format!("/{project}/frontends/room"),
            slug: "room",
        }
    }

    async fn list(&self, server: &TestServer) -> Value {
        self.owner
            .get(server, &format!("{}/revisions", self.path))
            .await
            .expect(200)
            .json()
    }

    /// How many revisions there are.
    async fn count(&self, server: &TestServer) -> usize {
        let list = self.list(server).await;
        list["revisions"].as_array().unwrap().len()
    }

    async fn active(&self, server: &TestServer) -> String {
        text(&self.list(server).await["active_revision_id"])
    }

    /// Makes a draft of what is live; returns its id.
    async fn draft(&self, server: &TestServer, content: &str) -> String {
        let body = json!({ "base_revision_id": self.active(server).await, "content": content });
        let path = format!("{}/revisions", self.path);
        let made = self
            .owner
            .post(server, &path, &body)
            .await
            .expect(200)
            .json();
        assert_eq!(made["deduplicated"], false);
        text(&made["revision"]["revision_id"])
    }

    async fn release(
        &self,
        server: &TestServer,
        how: &str,
        revision: &str,
        expected: &str,
    ) -> svc_tests::Answer {
        let body = json!({ "revision_id": revision, "expected_active_revision_id": expected });
        self.owner
            .post(server, &format!("{}/{how}", self.path), &body)
            .await
    }

    /// Kind and state of a revision.
    async fn state(&self, server: &TestServer, revision: &str) -> (String, String) {
        let path = format!("{}/revisions/{revision}", self.path);
        let revision = self.owner.get(server, &path).await.expect(200).json();
        (text(&revision["kind"]), text(&revision["state"]))
    }
}

#[tokio::test]
async fn every_transition_is_as_the_table_says() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let frontend = history
        .owner
        .get(&server, &history.path)
        .await
        .expect(200)
        .json();
    assert_eq!(
        frontend.get("active_revision_id"),
        None,
        "not yet in the workflow"
    );
    let one = history.active(&server).await;
    let check = async |revision: &str, kind: &str, state: &str| {
        let found = history.state(&server, revision).await;
        assert_eq!(found, (kind.to_owned(), state.to_owned()), "{revision}");
    };
    check(&one, "baseline", "active").await;
    let two = history.draft(&server, "# Two").await;
    check(&two, "draft", "draft").await;
    let page = async || server.get("/room").answer().await.expect(200);
    assert!(
        page().await.text().contains("One"),
        "a draft is nobody's to see"
    );

    history
        .release(&server, "promote", &two, &one)
        .await
        .expect(200);
    check(&two, "promote", "active").await;
    check(&one, "baseline", "superseded").await;
    assert!(page().await.text().contains("Two"));

    history
        .release(&server, "rollback", &one, &two)
        .await
        .expect(200);
    check(&one, "rollback", "active").await;
    check(&two, "promote", "rolled_back").await;
    assert!(page().await.text().contains("One"));

    let content = json!({ "content": "# Three" });
    let put = history
        .owner
        .send(&server, Method::PUT, &history.path, &content)
        .await
        .expect(200);
    let three = text(&put.json()["active_revision_id"]);
    check(&three, "publish", "active").await;
    check(&one, "rollback", "superseded").await;
    assert_eq!(put.json()["revision_count"], 3);

    // Releases that change nothing, and those that are refused.
    let same = history
        .release(&server, "promote", &three, &three)
        .await
        .expect(200)
        .json();
    assert_eq!(same["revision"]["kind"], "publish");
    let four = history.draft(&server, "# Four").await;
    history
        .release(&server, "rollback", &four, &three)
        .await
        .problem(400, "invalid_request");
    let nobody = "01a1fc50-0000-7000-8000-000000000000";
    history
        .release(&server, "promote", nobody, &three)
        .await
        .problem(404, "not_found");
    history
        .release(&server, "promote", "x", &three)
        .await
        .problem(404, "not_found");
    // A text that is no id is not the active revision's.
    for expected in [one.as_str(), "x", ""] {
        let stale = history.release(&server, "promote", &four, expected).await;
        let conflict = stale.problem(409, "revision_conflict");
        assert_eq!(conflict["active_revision_id"], three);
        let draft = json!({ "base_revision_id": expected, "content": "# Five" });
        let path = format!("{}/revisions", history.path);
        let stale = history.owner.post(&server, &path, &draft).await;
        let conflict = stale.problem(409, "revision_conflict");
        assert_eq!(conflict["active_revision_id"], three);
    }
    let long = "m".repeat(1001);
    let release =
        json!({ "revision_id": four, "expected_active_revision_id": three, "message": long });
    let draft = json!({ "base_revision_id": three, "content": "# Five", "message": long });
    for (action, body) in [
        ("promote", &release),
        ("rollback", &release),
        ("revisions", &draft),
    ] {
        let path = format!("{}/{action}", history.path);
        let refused = history.owner.post(&server, &path, body).await;
        let problem = refused.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains("`message`"), "{problem}");
    }
    check(&four, "draft", "draft").await;

    let releases = history
        .owner
        .get(&server, &format!("{}/releases", history.path))
        .await
        .json();
    let kinds: Vec<_> = releases["releases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| text(&entry["kind"]))
        .collect();
    assert_eq!(kinds, ["publish", "rollback", "promote", "baseline"]);
}

#[tokio::test]
async fn a_release_shows_its_own_message_else_its_revisions() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let one = history.active(&server).await;
    let path = format!("{}/revisions", history.path);
    let draft = json!({ "base_revision_id": one, "content": "# Two", "message": "We open" });
    let made = history.owner.post(&server, &path, &draft).await.expect(200);
    let two = text(&made.json()["revision"]["revision_id"]);
    let release = async |kind: &str, revision: &str, expected: &str, message: Value| {
        let body = json!({
            "revision_id": revision, "expected_active_revision_id": expected, "message": message,
        });
        let path = format!("{}/{kind}", history.path);
        history.owner.post(&server, &path, &body).await.expect(200);
    };
    release("promote", &two, &one, Value::Null).await;
    release("rollback", &one, &two, json!("We close")).await;
    release("promote", &two, &one, json!("Once more")).await;
    let path = format!("{}/releases", history.path);
    let releases = history.owner.get(&server, &path).await.json();
    let messages: Vec<_> = releases["releases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["message"].clone())
        .collect();
    let expected = [
        json!("Once more"),
        json!("We close"),
        json!("We open"),
        Value::Null,
    ];
    assert_eq!(messages, expected);
}

#[tokio::test]
async fn drafts_deduplicate_by_content_and_title() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let base = history.active(&server).await;
    let path = format!("{}/revisions", history.path);
    let draft = async |content: &str, title: &str| {
        let body = json!({ "base_revision_id": base, "content": content, "title": title });
        let made = history
            .owner
            .post(&server, &path, &body)
            .await
            .expect(200)
            .json();
        (
            text(&made["revision"]["revision_id"]),
            made["deduplicated"].as_bool().unwrap(),
        )
    };
    let (first, _) = draft("# Two", "a").await;
    assert_eq!(draft("# Two", "a").await, (first.clone(), true));
    assert!(!draft("# Two", "b").await.1);
    assert_eq!(
        draft("# One", "One").await,
        (base.clone(), true),
        "the baseline counts too"
    );
    assert_eq!(history.count(&server).await, 3);
}

#[tokio::test]
async fn edits_say_what_did_not_fit() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let base = history.active(&server).await;
    let path = format!("{}/revisions", history.path);
    let edit = async |edits: Value| {
        let body = json!({ "base_revision_id": base, "edits": edits });
        history.owner.post(&server, &path, &body).await
    };
    let made = edit(json!([{ "find": "One", "replace": "Two Two" }, { "find": "Two", "replace": "2", "count": 2 }])).await;
    let id = text(&made.expect(200).json()["revision"]["revision_id"]);
    let source = format!("{}/content?revision_id={id}", history.path);
    let source = history.owner.get(&server, &source).await.expect(200).json();
    assert_eq!(source["content"], "# 2 2");
    for (edits, says) in [
        (
            json!([{ "find": "Zero", "replace": "x" }]),
            "`edits[0]`: `find` occurs 0 times, not 1",
        ),
        (
            json!([{ "find": "One", "replace": "x" }, { "find": "x", "replace": "y", "count": 3 }]),
            "`edits[1]`: `find` occurs 1 times, not 3",
        ),
        (json!([{ "find": "", "replace": "x" }]), "`edits[0].find`"),
        (
            json!([{ "find": "One", "replace": "x", "count": 0 }]),
            "`edits[0].count`",
        ),
        (json!([]), "`edits`"),
        (json!([{ "find": "# One", "replace": "" }]), "leave nothing"),
        (
            Value::from(vec![json!({ "find": "One", "replace": "One" }); 101]),
            "`edits` has 101 entries",
        ),
    ] {
        let problem = edit(edits).await.problem(400, "invalid_request");
        assert!(text(&problem["detail"]).contains(says), "{problem}");
    }
    let both = json!({ "base_revision_id": base, "content": "x", "edits": [{ "find": "One", "replace": "x" }] });
    history
        .owner
        .post(&server, &path, &both)
        .await
        .problem(400, "invalid_request");
    assert_eq!(history.count(&server).await, 2);
}

#[tokio::test]
async fn edits_have_the_processor_time_of_a_page() {
    let builder = TestServer::builder().limits(|limits| limits.page_processor_ms = 100);
    let server = builder.start().await;
    let history = RevisionsFixture::new(&server).await;
    let letters = 900_000;
    let mut edits = vec![json!({ "find": "One", "replace": "a".repeat(letters) })];
    let turns = [("a", "b"), ("b", "a")].into_iter().cycle();
    for (find, replace) in turns.take(99) {
        edits.push(json!({ "find": find, "replace": replace, "count": letters }));
    }
    let body = json!({ "base_revision_id": history.active(&server).await, "edits": edits });
    let before = history.count(&server).await;
    let path = format!("{}/revisions", history.path);
    let answer = history.owner.post(&server, &path, &body).await;
    let problem = answer.problem(400, "invalid_request");
    let detail = text(&problem["detail"]);
    assert!(detail.contains("100 ms of processor time"), "{problem}");
    assert_eq!(history.count(&server).await, before);
}

#[tokio::test]
async fn promoting_a_draft_that_is_behind_says_what_it_drops() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let promote = async |revision: &str| {
        let active = history.active(&server).await;
        let body = json!({ "revision_id": revision, "expected_active_revision_id": active });
        let path = format!("{}/promote", history.path);
        let done = history.owner.post(&server, &path, &body).await;
        (active, done.expect(200).json())
    };
    let base = history.active(&server).await;
    let mut late = Vec::new();
    for n in 0..3 {
        late.push(history.draft(&server, &format!("# Late {n}")).await);
    }
    let fresh = history.draft(&server, "# Fresh").await;
    // The base revision is live.
    assert_eq!(promote(&fresh).await.1["note"], Value::Null);
    let newer = history.draft(&server, "# Newer").await;
    promote(&newer).await;
    let (active, done) = promote(&late[0]).await;
    let note = text(&done["note"]);
    assert_eq!(active, newer);
    assert!(
        note.starts_with(&format!("This draft was made from revision {base}.")),
        "{note}"
    );
    assert!(
        note.contains(&format!("{newer}, {fresh}.")),
        "the newest first: {note}"
    );
    assert!(note.contains(&format!("roll back to {newer}")), "{note}");
    // A revision that was live is no draft.
    assert_eq!(promote(&newer).await.1["note"], Value::Null);
    // A rollback restores the base revision.
    promote(&fresh).await;
    promote(&base).await;
    assert_eq!(promote(&late[1]).await.1["note"], Value::Null);
    // Many are named by the newest and counted; a draft that is sent again is made from what is live.
    for n in 0..6 {
        let next = history.draft(&server, &format!("# Next {n}")).await;
        promote(&next).await;
    }
    let behind = text(&promote(&late[2]).await.1["note"]);
    assert!(behind.contains(", 2 more."), "{behind}");
    let stale = history.draft(&server, "# Stale").await;
    let next = history.draft(&server, "# Last").await;
    promote(&next).await;
    let again = json!({ "base_revision_id": next, "content": "# Stale" });
    let path = format!("{}/revisions", history.path);
    let same = history.owner.post(&server, &path, &again).await;
    assert_eq!(same.expect(200).json()["deduplicated"], true);
    assert_eq!(promote(&stale).await.1["note"], Value::Null);
}
