//! Folders and pasted files as quick shares, and what is too much for one.

use svc_tests::run_command;

use super::super::run_with_input;
use super::SiteFixture;
use crate::owner::text;

#[tokio::test]
async fn a_folder_is_shared_without_a_login_and_claimed() {
    let fixture = SiteFixture::start().await;
    fixture.write_all(&[
        (
            "index.html",
            "<title>Demo</title><script src=\"/a.js\"></script>",
        ),
        ("a.js", "run()"),
        ("b.bin", "\u{1}\u{2}"),
    ]);
    let url = fixture.client.url();
    let mut command = fixture.client.command_without_credential(&[
        "publish",
        "dist",
        "--name",
        "demo",
        "--expires-in",
        "2h",
        "--server",
        &url,
    ]);
    command.env_remove("SVC_CREDENTIAL");
    let shared = run_command(command).await;
    assert!(shared.success, "{shared:?}");
    for said in [
        "svc unpublish",
        "dist/index.html:1 names `/a.js`",
        "relative",
    ] {
        assert!(shared.stderr.contains(said), "{said}: {shared:?}");
    }
    assert_eq!(fixture.read("/demo/a.js").await, "run()");
    let made = fixture
        .client
        .json(&["publish", "dist", "--name", "mine"])
        .await;
    let made = &made["published"][0];
    assert_eq!(made["title"], "Demo");
    let (id, token) = (text(&made["id"]), text(&made["delete_token"]));
    let claim = ["frontend", "claim", &id, "--project", "Shop"];
    let claimed = run_with_input(fixture.client.command(&claim), &token).await;
    assert!(claimed.success, "{claimed:?}");
    fixture.write_all(&[("a.js", "walk()")]);
    let push = ["push", "dist", "--slug", "mine"];
    fixture.client.run_for_stdout(&push).await;
    assert_eq!(fixture.read("/mine/a.js").await, "walk()");
}

#[tokio::test]
async fn what_is_too_much_for_a_share_is_told_where_it_fits() {
    let fixture = SiteFixture::start().await;
    for number in 0..101 {
        fixture.client.write(&format!("many/{number}.txt"), "x");
    }
    fixture
        .client
        .write("large/index.html", &"x".repeat(2_000_000));
    for folder in ["many", "large"] {
        let refused = fixture.client.run(&["publish", folder]).await;
        assert!(!refused.success, "{refused:?}");
        let said = format!("svc publish {folder}/ --project NAME");
        assert!(
            refused.stderr.contains("svc login URL") && refused.stderr.contains(&said),
            "{refused:?}"
        );
        let words = ["publish", folder, "--project", "Shop"];
        fixture.client.run_for_stdout(&words).await;
    }
}

#[tokio::test]
async fn a_picture_is_shown_as_it_is() {
    let fixture = SiteFixture::start().await;
    let bytes = b"\x89PNG\r\n\x1a\n\0\0";
    std::fs::write(fixture.client.path_of("my pic.png"), bytes).unwrap();
    let words = ["publish", "my pic.png", "--name", "pic"];
    let shared = fixture.client.run(&words).await;
    assert!(shared.success, "{shared:?}");
    assert!(fixture.read("/pic/").await.contains("<img"));
    let in_project = ["publish", "my pic.png", "--project", "Shop"];
    fixture.client.run_for_stdout(&in_project).await;
    assert_eq!(fixture.paths("my-pic").await, ["index.html", "my pic.png"]);
    assert!(fixture.read("/my-pic/").await.contains("my%20pic"));
    let answer = fixture.client.server.get("/my-pic/my%20pic.png").await;
    assert_eq!(answer.expect(200).body.as_ref(), bytes);
    std::fs::write(fixture.client.path_of("my pic.png"), b"\x89PNG other").unwrap();
    let pushed = fixture.client.json(&["push", "my pic.png"]).await;
    assert_eq!(
        pushed["files"]["changed"],
        serde_json::json!(["my pic.png"])
    );
}
