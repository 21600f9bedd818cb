//! Races: visitors never find a mixture, and of releases at once each is whole or refused.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A release number `n`: the page names the number, and its call names the param that the action of the same release has.
fn numbered(n: u64, expected: &Value) -> Value {
    // Each release changes the params, with a default, so that pages of the release before go on.
    let sql = format!(
        "SELECT {n} AS n, :p{n} AS p, :p{} AS q",
        n.saturating_sub(1)
    );
    let defaults = json!({ format!("p{n}"): n, format!("p{}", n.saturating_sub(1)): n });
    json!({
        "actions": [{ "name": "say", "sql": sql, "defaults": defaults }],
        "pages": [page("room", &format!("# Number {n}"), expected)],
    })
}

#[tokio::test]
async fn no_visitor_has_a_page_that_its_action_refuses() {
    let builder = TestServer::builder().limits(|limits| {
        limits.op_burst = 10_000;
        limits.op_deployment_burst = 10_000;
    });
    let at = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    let room = active(&at, "room").await;
    let mut live = released(&at, numbered(1, &room)).await["pages"][0]["revision_id"].clone();
    let answered = AtomicU64::new(1);
    let visiting = async {
        let mut seen = BTreeSet::new();
        for _ in 0..1_000 {
            let raw = shown(&at.server, "room").await.expect("the page is there");
            let n: u64 = raw.strip_prefix("# Number ").unwrap().parse().unwrap();
            // A node may show what another one has yet to hear of, until the release is answered.
            let is_early = at.server.has_several_nodes() && answered.load(Ordering::SeqCst) < n;
            let called = json!({ "action": "say", "params": { format!("p{n}"): 7 } });
            let answer = at.call("room", &called).await;
            if is_early {
                continue;
            }
            let rows = answer.json()["rows"].clone();
            let of = rows[0]["n"].as_u64();
            // The next release, and no later one, may have come between the page and its call; the one before never.
            if let Some(of) = of {
                assert!(of >= n, "an old action for the page {n}: {rows}");
            } else {
                // The action has no param of a release that is two behind it, or more.
                assert_eq!(answer.status, 400, "{}", answer.text());
                let now = shown(&at.server, "room").await.unwrap();
                let now: u64 = now.strip_prefix("# Number ").unwrap().parse().unwrap();
                // The node of the call may have been ahead of this one by a release that is not answered.
                let ahead = u64::from(at.server.has_several_nodes());
                assert!(now + ahead > n + 1, "page {n} at {now}: {}", answer.text());
            }
            seen.insert(n);
        }
        seen
    };
    let releasing = async {
        for n in 2..=200 {
            let answer = released(&at, numbered(n, &live)).await;
            live = answer["pages"][0]["revision_id"].clone();
            answered.store(n, Ordering::SeqCst);
        }
    };
    let (seen, ()) = tokio::join!(visiting, releasing);
    assert!(seen.len() > 10, "releases came between: {seen:?}");
}

#[tokio::test]
async fn of_releases_at_once_one_wins_and_the_others_change_nothing() {
    let at = ProjectFixture::new(GUESTS).await;
    let room = active(&at, "room").await;
    let body = |n: usize| {
        json!({
            "migrations": [{ "ddl": format!("CREATE TABLE t{n} (a)") }],
            "actions": [{ "name": "which", "sql": format!("SELECT a FROM t{n}"), "expected_version": 0 }],
            "pages": [page("room", &format!("# Number {n}"), &room), new_page("hall", &format!("# Hall {n}"))],
        })
    };
    let bodies: Vec<_> = (0..8).map(body).collect();
    let answers =
        futures_util::future::join_all(bodies.iter().map(|body| release(&at, body))).await;
    let won: Vec<_> = (0..8).filter(|n| answers[*n].status == 200).collect();
    let [won] = won[..] else {
        panic!("{won:?}: {answers:?}")
    };
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(lost.json()["code"], "release_conflict", "{}", lost.text());
    }
    let detail = at.detail().await;
    assert_eq!(
        tables(&detail["schema"]["tables"]),
        ["guests".to_owned(), format!("t{won}")]
    );
    assert_eq!(
        shown(&at.server, "room").await,
        Some(format!("# Number {won}"))
    );
    assert_eq!(
        shown(&at.server, "hall").await,
        Some(format!("# Hall {won}"))
    );
    at.call_ok("which", &json!({})).await;
}

#[tokio::test]
async fn of_first_releases_at_once_one_makes_the_backend() {
    let at = ProjectFixture::without_backend(TestServer::start().await).await;
    let body = |n: usize| {
        json!({
            "migrations": [{ "ddl": GUESTS }],
            "actions": [{ "name": format!("a{n}"), "sql": "SELECT name FROM guests" }],
            "pages": [new_page(&format!("page-{n}"), "# One")],
        })
    };
    let bodies: Vec<_> = (0..5).map(body).collect();
    let answers =
        futures_util::future::join_all(bodies.iter().map(|body| release(&at, body))).await;
    let mut statuses: Vec<_> = answers
        .into_iter()
        .map(|answer| text(&answer.expect(200).json()["migrations"][0]["status"]))
        .collect();
    statuses.sort();
    statuses.dedup();
    assert_eq!(statuses, ["already_applied", "applied"]);
    assert_eq!(versions(&at).await.len(), 5);
    for n in 0..5 {
        let call = json!({ "action": format!("a{n}") });
        at.call(&format!("page-{n}"), &call).await.expect(200);
    }
}

#[tokio::test]
async fn a_first_release_goes_on_where_somebody_else_makes_the_backend() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let mut at = ProjectFixture {
        project: String::new(),
        server,
        owner,
    };
    for n in 0..5 {
        at.project = at.owner.project(&at.server, &format!("House {n}")).await;
        let body = json!({
            "migrations": [{ "ddl": GUESTS }],
            "actions": [{ "name": "all", "sql": "SELECT name FROM guests" }],
            "pages": [new_page(&format!("page-{n}"), "# One")],
        });
        let making = json!({ "ddl": GUESTS });
        let making = at.send(Method::POST, "", &making);
        let (made, released) = tokio::join!(making, release(&at, &body));
        released.expect(200);
        if made.status != 201 {
            made.problem(409, "backend_exists");
        }
    }
}

#[tokio::test]
async fn a_release_beside_publications_is_whole_or_refused() {
    let at = ProjectFixture::new(GUESTS).await;
    let publishing = async {
        for n in 0..20 {
            let path = format!("/{}/frontends/room", at.project);
            let body = json!({ "content": format!("# Put {n}") });
            at.owner
                .send(&at.server, Method::PUT, &path, &body)
                .await
                .expect(200);
        }
    };
    let releasing = async {
        let mut made = Vec::new();
        for n in 0..20 {
            let live = active(&at, "room").await;
            let body = json!({
                "actions": [{ "name": "say", "sql": format!("SELECT {n} AS n") }],
                "pages": [page("room", &format!("# Release {n}"), &live)],
            });
            let answer = release(&at, &body).await;
            match answer.status {
                200 => made.push((n, answer.json())),
                _ => drop(answer.problem(409, "release_conflict")),
            }
        }
        made
    };
    let ((), made) = tokio::join!(publishing, releasing);
    // Every version of the action belongs to a release that was answered.
    let defined = versions(&at).await;
    let last = made
        .last()
        .map(|(_, answer)| answer["actions"][0]["version"].as_u64().unwrap());
    assert_eq!(defined.first().map(|(_, version)| *version), last);
    assert_eq!(last, (!made.is_empty()).then_some(made.len() as u64));
}
