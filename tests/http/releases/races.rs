//! Races for the release pointer.

use super::*;

#[tokio::test]
async fn of_many_promotes_with_one_expectation_one_wins() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let base = history.active(&server).await;
    let mut drafts = Vec::new();
    for number in 0..50 {
        drafts.push(history.draft(&server, &format!("# Draft {number}")).await);
    }
    let promotes = drafts
        .iter()
        .map(|draft| history.release(&server, "promote", draft, &base));
    let answers = futures_util::future::join_all(promotes).await;
    let won: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    assert_eq!(won.len(), 1);
    let live = text(&won[0].json()["revision"]["revision_id"]);
    assert_eq!(history.active(&server).await, live);
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(
            lost.problem(409, "revision_conflict")["active_revision_id"],
            live
        );
    }
}

#[tokio::test]
async fn of_many_frontends_with_one_wish_each_gets_a_slug() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let creates = (0..50).map(|_| owner.frontend(&server, &project, "wish"));
    let made = futures_util::future::join_all(creates).await;
    let slugs: BTreeSet<_> = made
        .iter()
        .map(|frontend| text(&frontend["slug"]))
        .collect();
    assert_eq!(slugs.len(), 50);
    for slug in slugs {
        server.get(&format!("/{slug}")).answer().await.expect(200);
    }
}

#[tokio::test]
async fn readers_see_one_revision_at_a_time() {
    let server = TestServer::start().await;
    let history = RevisionsFixture::new(&server).await;
    let one = history.active(&server).await;
    let two = history.draft(&server, "# Two").await;
    let page = format!("/{}", history.slug);
    let raw = format!("{page}/raw");
    let reading = async {
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            let answer = server.get(&page).answer().await.expect(200);
            let (first, second) = (
                answer.text().contains("id=\"one\""),
                answer.text().contains("id=\"two\""),
            );
            assert!(first != second, "a mixture: {}", answer.text());
            seen.insert((text(&json!(answer.header("etag"))), first));
            let source = server.get(&raw).answer().await.expect(200);
            assert!(["# One", "# Two"].contains(&source.text()));
        }
        seen
    };
    let releasing = async {
        let (mut live, mut next) = (one.clone(), two.clone());
        for _ in 0..20 {
            history
                .release(&server, "promote", &next, &live)
                .await
                .expect(200);
            let now = server.get(&raw).answer().await;
            assert_eq!(
                now.text() == "# Two",
                next == two,
                "what was answered is what is read"
            );
            std::mem::swap(&mut live, &mut next);
        }
    };
    let (seen, ()) = tokio::join!(reading, releasing);
    assert_eq!(seen.len(), 2, "an entity tag for each revision: {seen:?}");
}
