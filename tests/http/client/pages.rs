//! `svc push`, `watch`, `frontend`, `revision` and `project`.

use rustix::process::Signal;
use svc_tests::wait_until;

use super::{ClientFixture, RunningCommand, run_with_input};
use crate::owner::text;

/// Creates a project with the page `shop`.
async fn start_with_page() -> ClientFixture {
    let fixture = ClientFixture::new().await;
    fixture
        .run_for_stdout(&["project", "create", "Shop", "--description", "All for sale"])
        .await;
    fixture.write("shop.md", "# Shop\n\nClosed.\n");
    fixture
        .run_for_stdout(&["publish", "shop.md", "--project", "Shop"])
        .await;
    fixture
}

#[tokio::test]
async fn a_file_becomes_what_is_live() {
    let fixture = start_with_page().await;
    fixture.write("shop.md", "# Shop\n\nOpen.\n");
    // A draft has a preview, and changes nothing.
    let draft = fixture
        .run(&["push", "shop.md", "--draft", "-m", "We open"])
        .await;
    assert!(draft.stdout.contains("/_preview/"), "{draft:?}");
    assert!(draft.stderr.contains("-Closed.\n+Open.\n"), "{draft:?}");
    assert_eq!(fixture.fetch_source("shop").await, "# Shop\n\nClosed.\n");
    let pushed = fixture
        .json(&["push", "shop.md", "--promote", "-m", "We open"])
        .await;
    assert_eq!(pushed["added"], 1);
    assert_eq!(pushed["live"], true);
    assert_eq!(fixture.fetch_source("shop").await, "# Shop\n\nOpen.\n");
    let again = fixture.run(&["push", "shop.md"]).await;
    assert!(
        again.success && again.stdout.contains("nothing has changed"),
        "{again:?}"
    );
    let releases = fixture
        .run_for_stdout(&["frontend", "releases", "shop"])
        .await;
    assert!(
        releases.contains("We open") && releases.lines().count() == 3,
        "{releases}"
    );
    // A type is for good, and a slug is not made by a push.
    fixture.write("shop.html", "<h1>Shop</h1>");
    let refused = fixture.run_for_failure(1, &["push", "shop.html"]).await;
    assert!(
        refused.contains("html") && refused.contains("markdown"),
        "{refused}"
    );
    let unknown = fixture
        .run_for_failure(4, &["push", "shop.md", "--slug", "nothing"])
        .await;
    assert!(
        unknown.contains("svc publish FILE --project shop-acme --name nothing"),
        "{unknown}"
    );
}

/// Standard input has no name, so that its type is the page's, and it can be read once.
#[tokio::test]
async fn standard_input_is_of_the_pages_type() {
    let fixture = start_with_page().await;
    fixture.write("data.html", "<h1>Old</h1>\n");
    fixture
        .run_for_stdout(&["publish", "data.html", "--project", "Shop"])
        .await;
    let new = "<h1>New</h1>\n";
    let diff = fixture.command(&["frontend", "diff", "data", "-"]);
    let output = run_with_input(diff, new).await;
    assert!(output.stdout.contains("+<h1>New</h1>"), "{output:?}");
    let push = fixture.command(&["push", "-", "--slug", "data"]);
    let output = run_with_input(push, new).await;
    assert!(output.success, "{output:?}");
    assert_eq!(fixture.fetch_source("data").await, new);
}

#[tokio::test]
async fn the_history_is_read_compared_and_turned_back() {
    let fixture = start_with_page().await;
    fixture.write("shop.md", "# Shop\n\nOpen.\n");
    let diff = fixture
        .run_for_stdout(&["frontend", "diff", "shop", "shop.md"])
        .await;
    assert!(diff.contains("-Closed.\n+Open."), "{diff}");
    fixture.run_for_stdout(&["push", "shop.md"]).await;
    let list = fixture.json(&["revision", "list", "shop"]).await;
    let [new, old] = [0, 1].map(|number| text(&list["revisions"][number]["revision_id"]));
    assert_eq!(list["active_revision_id"], new.as_str());
    let diff = fixture
        .run_for_stdout(&["revision", "diff", "shop", &old])
        .await;
    assert!(diff.contains("-Open.\n+Closed."), "{diff}");
    let diff = fixture
        .run_for_stdout(&["revision", "diff", "shop", &new, "--from", &old])
        .await;
    assert!(diff.contains("-Closed.\n+Open."), "{diff}");
    let shown = fixture
        .run_for_stdout(&["revision", "show", "shop", &old])
        .await;
    assert!(shown.contains("superseded"), "{shown}");
    // Compare and set: what is expected to be live is not.
    let conflict = fixture
        .run_for_failure(5, &["revision", "rollback", "shop", &old, "--expect", &old])
        .await;
    assert!(conflict.contains("error: Revision conflict"), "{conflict}");
    assert_eq!(fixture.fetch_source("shop").await, "# Shop\n\nOpen.\n");
    fixture
        .run_for_stdout(&["revision", "rollback", "shop", &old, "-m", "Not yet"])
        .await;
    assert_eq!(fixture.fetch_source("shop").await, "# Shop\n\nClosed.\n");
    fixture
        .run_for_stdout(&["revision", "promote", "shop", &new])
        .await;
    let content = fixture
        .run_for_stdout(&["frontend", "content", "shop"])
        .await;
    assert_eq!(content, "# Shop\n\nOpen.\n");
    let content = fixture
        .run_for_stdout(&["frontend", "content", "shop", "--revision", &old])
        .await;
    assert_eq!(content, "# Shop\n\nClosed.\n");
}

#[tokio::test]
async fn projects_and_pages_are_listed_changed_and_deleted() {
    let fixture = start_with_page().await;
    let shown = fixture.run_for_stdout(&["project", "show", "Shop"]).await;
    assert!(
        shown.contains("All for sale") && shown.contains("shop"),
        "{shown}"
    );
    fixture
        .run_for_stdout(&[
            "project", "update", "Shop", "--name", "Market", "--home", "shop",
        ])
        .await;
    let market = fixture.json(&["project", "show", "Market"]).await;
    assert_eq!(market["home"], "shop");
    let list = fixture.run_for_stdout(&["frontend", "list"]).await;
    assert!(
        list.starts_with("slug") && list.contains("markdown"),
        "{list}"
    );
    let page = fixture.json(&["frontend", "show", "shop"]).await;
    assert_eq!(page["title"], "Shop");
    // A command that cannot be undone asks; without a terminal it is refused.
    let refused = fixture
        .run_for_failure(8, &["frontend", "delete", "shop"])
        .await;
    assert!(refused.contains("--yes"), "{refused}");
    fixture
        .run_for_stdout(&["frontend", "delete", "shop", "--yes"])
        .await;
    fixture.server.get("/shop").await.expect(404);
    fixture
        .run_for_stdout(&["project", "create", "Second"])
        .await;
    let which = fixture.run_for_failure(1, &["frontend", "list"]).await;
    assert!(
        which.contains("`market-acme`") || which.contains("Market"),
        "{which}"
    );
    assert!(
        which.contains("--project") && which.contains("Second"),
        "{which}"
    );
    fixture
        .run_for_stdout(&["project", "delete", "Market", "--yes"])
        .await;
    fixture
        .run_for_failure(4, &["project", "show", "Market"])
        .await;
}

#[tokio::test]
async fn a_file_that_is_watched_is_published_on_save() {
    let fixture = start_with_page().await;
    let mut watching = RunningCommand::start(&fixture.command(&["watch", "shop.md"]));
    let url = watching.wait_for_lines(1).await[0].clone();
    assert!(url.ends_with("/shop"), "{url}");
    let shows = async |text: &str| {
        wait_until("the save to be live", async || {
            (fixture.fetch_source("shop").await == text).then_some(())
        })
        .await;
    };
    fixture.write("shop.md", "# Shop\n\nOne.\n");
    shows("# Shop\n\nOne.\n").await;
    // A refused source is reported, and the next save is published.
    fixture.write("shop.md", "  \n");
    watching.wait_for_stderr("error:").await;
    fixture.write("shop.md", "# Shop\n\nTwo.\n");
    shows("# Shop\n\nTwo.\n").await;
    assert_eq!(
        watching.wait_for_lines(1).await.len(),
        1,
        "the address is told once"
    );
    watching.signal(Signal::INT);
    assert!(!watching.wait_for_exit().await.success());
    // `watch` creates a new page, and never overwrites another user's release.
    fixture.write("new.md", "# New\n");
    let mut watching = RunningCommand::start(&fixture.command(&["watch", "new.md"]));
    watching.wait_for_lines(1).await;
    fixture.write("other.md", "# Other\n");
    fixture
        .run_for_stdout(&["push", "other.md", "--slug", "new"])
        .await;
    fixture.write("new.md", "# Mine\n");
    assert_eq!(
        watching.wait_for_exit().await.code(),
        Some(5),
        "{}",
        watching.stderr()
    );
    assert_eq!(fixture.fetch_source("new").await, "# Other\n");
}
