//! `svc publish`, `push`, `watch`, `frontend` and `revision` with folders.

use std::os::unix::fs::symlink;

use rustix::process::Signal;
use svc_tests::wait_until;

use super::super::RunningCommand;
use super::{SiteFixture, matching};
use crate::owner::text;

#[tokio::test]
async fn a_folder_becomes_a_site_without_what_is_hidden() {
    let fixture = SiteFixture::start().await;
    fixture.write_all(&[
        (
            "index.html",
            "<title>My shop</title><script src=app.js></script>",
        ),
        ("app.js", "svc.db.op('all')"),
        ("docs/intro.html", "intro"),
        (".well-known/assetlinks.json", "[]"),
        (".env", "KEY=1"),
        ("node_modules/left/pad.js", "x"),
    ]);
    fixture.client.write("key", "secret");
    symlink("../key", fixture.client.path_of("dist/key.txt")).unwrap();
    symlink("docs", fixture.client.path_of("dist/latest")).unwrap();
    std::fs::write(fixture.client.path_of("dist/dot.gif"), b"GIF89a\x01\0\xff").unwrap();
    let words = ["publish", "dist/", "--project", "Shop"];
    let done = fixture.client.run(&words).await;
    assert!(done.success, "{done:?}");
    assert!(done.stdout.contains("http"), "{done:?}");
    for said in [".env", "node_modules", "key.txt is a link", "runtime.js"] {
        assert!(done.stderr.contains(said), "{said}: {done:?}");
    }
    let expected = [
        ".well-known/assetlinks.json",
        "app.js",
        "docs/intro.html",
        "dot.gif",
        "index.html",
        "latest/intro.html",
    ];
    assert_eq!(fixture.paths("dist").await, expected);
    assert_eq!(fixture.read("/dist/latest/intro").await, "intro");
    let shown = fixture.client.json(&["frontend", "show", "dist"]).await;
    assert_eq!([&shown["type"], &shown["title"]], ["site", "My shop"]);
    let listed = fixture
        .client
        .run_for_stdout(&["frontend", "content", "dist"])
        .await;
    assert!(listed.contains("docs/intro.html"), "{listed}");
}

#[tokio::test]
async fn what_cannot_be_a_site_is_refused_before_it_is_sent() {
    let fixture = SiteFixture::start().await;
    std::fs::create_dir(fixture.client.path_of("empty")).unwrap();
    fixture.client.write("page.md", "# Page");
    fixture.client.write("odd/a\\b", "x");
    fixture.write_all(&[("index.html", "x")]);
    let in_project = ["--project", "Shop"];
    for (words, said) in [
        (&["publish", "empty"][..], "no file"),
        (&["publish", "odd"], "backslash"),
        (&["publish", "dist", "--fallback", "none.html"], "none.html"),
        (&["publish", "dist", "--type", "html"], "--type"),
        (&["publish", "page.md", "--fallback", "a"], "folder"),
    ] {
        let (refused, sent) = fixture.record(&[words, &in_project].concat()).await;
        assert_eq!(refused.code, Some(1), "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(said), "{words:?}: {refused:?}");
        assert!(sent.is_empty(), "{words:?}: {sent:?}");
    }
    for words in [
        &["publish", "dist", "--one-time"][..],
        &["push", "page.md", "--force"],
    ] {
        let refused = fixture.client.run(words).await;
        assert_eq!(refused.code, Some(1), "{words:?}: {refused:?}");
    }
    // A page stays a page, and a site a site.
    let words = ["publish", "page.md", "--project", "Shop"];
    fixture.client.run_for_stdout(&words).await;
    let words = ["publish", "dist", "--project", "Shop"];
    fixture.client.run_for_stdout(&words).await;
    for words in [
        ["push", "dist", "--slug", "page"],
        ["push", "page.md", "--slug", "dist"],
    ] {
        let refused = fixture.client.run_for_failure(1, &words).await;
        assert!(refused.contains("for good"), "{refused}");
    }
}

#[tokio::test]
async fn a_push_sends_what_has_changed_and_nothing_else() {
    let fixture = SiteFixture::start().await;
    let text = |number: usize| format!("<p>{number}</p>{}", "x".repeat(10_000));
    for number in 0..300 {
        fixture
            .client
            .write(&format!("dist/page-{number:03}.html"), &text(number));
    }
    fixture.write_all(&[("index.html", "one")]);
    let words = ["publish", "dist", "--project", "Shop"];
    let (done, sent) = fixture.record(&words).await;
    assert!(done.success, "{done:?}");
    // Counts and sizes are judged before a file is sent.
    let publications = matching(&sent, "POST", "/frontends");
    assert_eq!(publications.len(), 2, "{publications:?}");
    assert!(publications[0].bytes < 60_000, "{publications:?}");
    let blobs = sent.iter().filter(|one| one.line.contains("/blobs/"));
    assert!(blobs.count() > 100);
    // One of them changes, and what is live is known from the publication.
    fixture.client.write("dist/page-007.html", &text(1_007));
    let (done, sent) = fixture.record(&["push", "dist", "-m", "Seven"]).await;
    assert!(done.success, "{done:?}");
    assert!(done.stderr.contains("~ page-007.html"), "{done:?}");
    let all: usize = sent.iter().map(|one| one.bytes).sum();
    assert!(sent.len() <= 6 && all < 12_500, "{all}: {sent:?}");
    assert_eq!(fixture.read("/dist/page-007").await, text(1_007));
    // A file that goes is left out of a whole list, and none is sent again.
    let [old, new] = ["dist/page-008.html", "dist/page-308.html"];
    std::fs::rename(fixture.client.path_of(old), fixture.client.path_of(new)).unwrap();
    let (done, sent) = fixture.record(&["push", "dist"]).await;
    assert!(done.success, "{done:?}");
    let drafts = matching(&sent, "POST", "/revisions");
    assert!(drafts.len() == 1 && drafts[0].bytes < 60_000, "{sent:?}");
    assert!(
        !sent.iter().any(|one| one.line.contains("/blobs/")),
        "{sent:?}"
    );
    let paths = fixture.paths("dist").await;
    assert!(!paths.contains(&"page-008.html".to_owned()) && paths.len() == 301);
    let (again, sent) = fixture.record(&["push", "dist"]).await;
    assert!(again.stdout.contains("nothing has changed"), "{again:?}");
    assert!(
        sent.iter().all(|one| one.line.starts_with("GET")),
        "{sent:?}"
    );
    // Without what was remembered it asks, and does as well.
    std::fs::remove_dir_all(fixture.client.path_of(".svc")).unwrap();
    fixture.client.write("dist/index.html", "two");
    let pushed = fixture.client.json(&["push", "dist"]).await;
    assert_eq!(
        pushed["files"]["changed"],
        serde_json::json!(["index.html"])
    );
    assert_eq!(fixture.read("/dist/").await, "two");
}

#[tokio::test]
async fn large_files_go_ahead_of_the_draft() {
    let fixture = SiteFixture::with_site(&[("index.html", "one")]).await;
    let noise = |number: u32| number.wrapping_mul(2_654_435_761).to_be_bytes()[0];
    let large: Vec<u8> = (0..3_000_000).map(noise).collect();
    std::fs::write(fixture.client.path_of("dist/film.bin"), &large).unwrap();
    let draft = fixture.record(&["push", "dist", "--draft"]).await;
    let (output, sent) = draft;
    assert!(output.stdout.contains("/_preview/"), "{output:?}");
    let blobs: Vec<_> = sent
        .iter()
        .filter(|one| one.line.contains("/blobs/"))
        .collect();
    assert!(
        blobs.len() == 1 && blobs[0].bytes == large.len(),
        "{sent:?}"
    );
    assert_eq!(matching(&sent, "POST", "/revisions").len(), 2, "{sent:?}");
    assert_eq!(fixture.paths("dist").await, ["index.html"]);
    // The project has it now.
    let (output, sent) = fixture.record(&["push", "dist"]).await;
    assert!(output.success, "{output:?}");
    assert!(!sent.iter().any(|one| one.bytes > 10_000), "{sent:?}");
    assert_eq!(fixture.paths("dist").await, ["film.bin", "index.html"]);
}

#[tokio::test]
async fn a_colleagues_files_are_not_overwritten_unseen() {
    let fixture = SiteFixture::with_site(&[("index.html", "one"), ("a.txt", "a")]).await;
    fixture.write_all(&[("index.html", "ours")]);
    fixture.client.run_for_stdout(&["push", "dist"]).await;
    fixture.write_all(&[("a.txt", "theirs")]);
    fixture.push_from_elsewhere().await;
    fixture.write_all(&[("a.txt", "ours")]);
    let refused = fixture.client.run_for_failure(5, &["push", "dist"]).await;
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(fixture.read("/dist/a.txt").await, "theirs");
    // What would change can be seen.
    let seen = fixture
        .client
        .run_for_stdout(&["frontend", "diff", "dist", "dist"])
        .await;
    assert_eq!(seen, "~ a.txt (4 B)\n");
    fixture
        .client
        .run_for_stdout(&["push", "dist", "--draft"])
        .await;
    fixture
        .client
        .run_for_stdout(&["push", "dist", "--force"])
        .await;
    assert_eq!(fixture.read("/dist/a.txt").await, "ours");
    fixture.write_all(&[("a.txt", "ours again")]);
    fixture.client.run_for_stdout(&["push", "dist"]).await;
}

#[tokio::test]
async fn revisions_are_compared_turned_back_and_deleted() {
    let fixture = SiteFixture::with_site(&[("index.html", "one"), ("old.txt", "x")]).await;
    std::fs::remove_file(fixture.client.path_of("dist/old.txt")).unwrap();
    fixture.write_all(&[("index.html", "two"), ("new.txt", "y")]);
    fixture.client.run_for_stdout(&["push", "dist"]).await;
    let list = fixture.client.json(&["revision", "list", "dist"]).await;
    let [new, old] = [0, 1].map(|number| text(&list["revisions"][number]["revision_id"]));
    let words = ["revision", "diff", "dist", &new, "--from", &old];
    let difference = fixture.client.run_for_stdout(&words).await;
    assert_eq!(
        difference,
        "+ new.txt (1 B)\n~ index.html (3 B)\n- old.txt\n"
    );
    let asked = ["revision", "delete", "dist", &old];
    fixture.client.run_for_failure(8, &asked).await;
    let words = ["revision", "rollback", "dist", &old];
    fixture.client.run_for_stdout(&words).await;
    assert_eq!(fixture.read("/dist/").await, "one");
    let live = ["revision", "delete", "dist", &old, "--yes"];
    fixture.client.run_for_failure(5, &live).await;
    let words = ["revision", "delete", "dist", &new, "--yes"];
    fixture.client.run_for_stdout(&words).await;
    let list = fixture.client.json(&["revision", "list", "dist"]).await;
    assert_eq!(list["revisions"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn a_folder_that_is_watched_is_published_on_save() {
    let fixture = SiteFixture::start().await;
    fixture.write_all(&[("index.html", "one")]);
    let watch = fixture
        .client
        .command(&["watch", "dist", "--project", "Shop"]);
    let mut watching = RunningCommand::start(&watch);
    watching.wait_for_lines(1).await;
    let shows = async |path: &str, text: &str| {
        wait_until("the save to be live", async || {
            let answer = fixture.client.server.get(path).await;
            (answer.status == 200 && answer.text() == text).then_some(())
        })
        .await;
    };
    shows("/dist/", "one").await;
    fixture.write_all(&[("index.html", "two"), ("a/b.txt", "new")]);
    shows("/dist/a/b.txt", "new").await;
    shows("/dist/", "two").await;
    // A build takes the folder away for a moment.
    std::fs::remove_dir_all(fixture.client.path_of("dist")).unwrap();
    watching.wait_for_stderr("error:").await;
    fixture.write_all(&[("index.html", "three")]);
    shows("/dist/", "three").await;
    watching.signal(Signal::INT);
    assert!(!watching.wait_for_exit().await.success());
}

#[tokio::test]
async fn open_tabs_keep_their_files_unless_a_release_forgets_them() {
    let fixture = SiteFixture::with_site(&[("index.html", "one"), ("a-1.js", "1")]).await;
    let replace = |old: &str, new: &str| {
        std::fs::remove_file(fixture.client.path_of(&format!("dist/{old}"))).unwrap();
        fixture.write_all(&[(new, new)]);
    };
    let status = async |path: &str| fixture.client.server.get(path).await.status;
    replace("a-1.js", "a-2.js");
    fixture.client.run_for_stdout(&["push", "dist"]).await;
    assert_eq!(status("/dist/a-1.js").await, 200);
    replace("a-2.js", "a-3.js");
    let words = ["push", "dist", "--forget"];
    fixture.client.run_for_stdout(&words).await;
    for path in ["/dist/a-1.js", "/dist/a-2.js"] {
        assert_eq!(status(path).await, 404, "{path}");
    }
    replace("a-3.js", "a-4.js");
    let draft = ["push", "dist", "--draft"];
    let draft = fixture.client.json(&draft).await;
    let draft = text(&draft["revision"]["revision_id"]);
    let words = ["revision", "promote", "dist", &draft, "--forget"];
    fixture.client.run_for_stdout(&words).await;
    assert_eq!(status("/dist/a-3.js").await, 404);
    assert_eq!(status("/dist/a-4.js").await, 200);
    fixture.client.write("page.md", "# Page");
    let words = ["push", "page.md", "--forget"];
    let refused = fixture.client.run_for_failure(1, &words).await;
    assert!(refused.contains("are for a folder"), "{refused}");
    let words = ["push", "dist", "--forget", "--draft"];
    fixture.client.run_for_failure(2, &words).await;
}
