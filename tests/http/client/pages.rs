//! `svc push`, `watch`, `frontend`, `revision` and `project`.

use rustix::process::Signal;
use svc_tests::wait_until;

use super::{Desk, Running};
use crate::owner::text;

/// A desk with a project and its page `shop`.
async fn shop() -> Desk {
    let desk = Desk::new().await;
    desk.said(&["project", "create", "Shop", "--description", "All for sale"])
        .await;
    desk.write("shop.md", "# Shop\n\nClosed.\n");
    desk.said(&["publish", "shop.md", "--project", "Shop"])
        .await;
    desk
}

#[tokio::test]
async fn a_file_becomes_what_is_live() {
    let desk = shop().await;
    desk.write("shop.md", "# Shop\n\nOpen.\n");
    // A draft has a preview, and changes nothing.
    let draft = desk
        .run(&["push", "shop.md", "--draft", "-m", "We open"])
        .await;
    assert!(draft.stdout.contains("/_preview/"), "{draft:?}");
    assert!(draft.stderr.contains("-Closed.\n+Open.\n"), "{draft:?}");
    assert_eq!(desk.raw("shop").await, "# Shop\n\nClosed.\n");
    let pushed = desk
        .json(&["push", "shop.md", "--promote", "-m", "We open"])
        .await;
    assert_eq!(pushed["added"], 1);
    assert_eq!(pushed["live"], true);
    assert_eq!(desk.raw("shop").await, "# Shop\n\nOpen.\n");
    let again = desk.run(&["push", "shop.md"]).await;
    assert!(
        again.success && again.stdout.contains("nothing has changed"),
        "{again:?}"
    );
    let releases = desk.said(&["frontend", "releases", "shop"]).await;
    assert!(
        releases.contains("We open") && releases.lines().count() == 3,
        "{releases}"
    );
    // A type is for good, and a slug is not made by a push.
    desk.write("shop.html", "<h1>Shop</h1>");
    let refused = desk.fails(1, &["push", "shop.html"]).await;
    assert!(
        refused.contains("html") && refused.contains("markdown"),
        "{refused}"
    );
    let unknown = desk
        .fails(4, &["push", "shop.md", "--slug", "nothing"])
        .await;
    assert!(
        unknown.contains("svc publish FILE --project shop-acme --name nothing"),
        "{unknown}"
    );
}

#[tokio::test]
async fn the_history_is_read_compared_and_turned_back() {
    let desk = shop().await;
    desk.write("shop.md", "# Shop\n\nOpen.\n");
    let diff = desk.said(&["frontend", "diff", "shop", "shop.md"]).await;
    assert!(diff.contains("-Closed.\n+Open."), "{diff}");
    desk.said(&["push", "shop.md"]).await;
    let list = desk.json(&["revision", "list", "shop"]).await;
    let [new, old] = [0, 1].map(|number| text(&list["revisions"][number]["revision_id"]));
    assert_eq!(list["active_revision_id"], new.as_str());
    let diff = desk.said(&["revision", "diff", "shop", &old]).await;
    assert!(diff.contains("-Open.\n+Closed."), "{diff}");
    let diff = desk
        .said(&["revision", "diff", "shop", &new, "--from", &old])
        .await;
    assert!(diff.contains("-Closed.\n+Open."), "{diff}");
    let shown = desk.said(&["revision", "show", "shop", &old]).await;
    assert!(shown.contains("superseded"), "{shown}");
    // Compare and set: what is expected to be live is not.
    let conflict = desk
        .fails(5, &["revision", "rollback", "shop", &old, "--expect", &old])
        .await;
    assert!(conflict.contains("error: Revision conflict"), "{conflict}");
    assert_eq!(desk.raw("shop").await, "# Shop\n\nOpen.\n");
    desk.said(&["revision", "rollback", "shop", &old, "-m", "Not yet"])
        .await;
    assert_eq!(desk.raw("shop").await, "# Shop\n\nClosed.\n");
    desk.said(&["revision", "promote", "shop", &new]).await;
    let content = desk.said(&["frontend", "content", "shop"]).await;
    assert_eq!(content, "# Shop\n\nOpen.\n");
    let content = desk
        .said(&["frontend", "content", "shop", "--revision", &old])
        .await;
    assert_eq!(content, "# Shop\n\nClosed.\n");
}

#[tokio::test]
async fn projects_and_pages_are_listed_changed_and_deleted() {
    let desk = shop().await;
    let shown = desk.said(&["project", "show", "Shop"]).await;
    assert!(
        shown.contains("All for sale") && shown.contains("shop"),
        "{shown}"
    );
    desk.said(&[
        "project", "update", "Shop", "--name", "Market", "--home", "shop",
    ])
    .await;
    let market = desk.json(&["project", "show", "Market"]).await;
    assert_eq!(market["home"], "shop");
    let list = desk.said(&["frontend", "list"]).await;
    assert!(
        list.starts_with("slug") && list.contains("markdown"),
        "{list}"
    );
    let page = desk.json(&["frontend", "show", "shop"]).await;
    assert_eq!(page["title"], "Shop");
    // What cannot be undone asks, and nobody is there to say yes.
    let refused = desk.fails(8, &["frontend", "delete", "shop"]).await;
    assert!(refused.contains("--yes"), "{refused}");
    desk.said(&["frontend", "delete", "shop", "--yes"]).await;
    desk.server.get("/shop").await.expect(404);
    desk.said(&["project", "create", "Second"]).await;
    let which = desk.fails(1, &["frontend", "list"]).await;
    assert!(
        which.contains("`market-acme`") || which.contains("Market"),
        "{which}"
    );
    assert!(
        which.contains("--project") && which.contains("Second"),
        "{which}"
    );
    desk.said(&["project", "delete", "Market", "--yes"]).await;
    desk.fails(4, &["project", "show", "Market"]).await;
}

#[tokio::test]
async fn a_file_that_is_watched_is_published_on_save() {
    let desk = shop().await;
    let mut watching = Running::start(&desk.command(&["watch", "shop.md"]));
    let url = watching.lines(1).await[0].clone();
    assert!(url.ends_with("/shop"), "{url}");
    let shows = async |text: &str| {
        wait_until("the save to be live", async || {
            (desk.raw("shop").await == text).then_some(())
        })
        .await;
    };
    desk.write("shop.md", "# Shop\n\nOne.\n");
    shows("# Shop\n\nOne.\n").await;
    // What cannot be published is told, and the next save is.
    desk.write("shop.md", "  \n");
    watching.hears("error:").await;
    desk.write("shop.md", "# Shop\n\nTwo.\n");
    shows("# Shop\n\nTwo.\n").await;
    assert_eq!(watching.lines(1).await.len(), 1, "the address is told once");
    watching.signal(Signal::INT);
    assert!(!watching.wait_for_exit().await.success());
    // A new page is made by it, and somebody else's release is never overwritten.
    desk.write("new.md", "# New\n");
    let mut watching = Running::start(&desk.command(&["watch", "new.md"]));
    watching.lines(1).await;
    desk.write("other.md", "# Other\n");
    desk.said(&["push", "other.md", "--slug", "new"]).await;
    desk.write("new.md", "# Mine\n");
    assert_eq!(
        watching.wait_for_exit().await.code(),
        Some(5),
        "{}",
        watching.stderr()
    );
    assert_eq!(desk.raw("new").await, "# Other\n");
}
