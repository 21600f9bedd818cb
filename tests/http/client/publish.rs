//! `svc publish` and `svc unpublish`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use svc_tests::run_command;

use super::{ClientFixture, run_with_input};
use crate::owner::text;

#[tokio::test]
async fn files_become_links_without_a_login() {
    let fixture = ClientFixture::new().await;
    fixture.write("hello.md", "# Hello\n");
    fixture.write("table.csv", "a,b\n1,2\n");
    fixture.write("main.rs", "fn main() {}\n");
    let mut command = fixture.command_without_credential(&[
        "publish",
        "hello.md",
        "table.csv",
        "main.rs",
        "--server",
        &fixture.url(),
    ]);
    command.env_remove("SVC_CREDENTIAL");
    let output = run_command(command).await;
    assert!(output.success, "{output:?}");
    let urls: Vec<_> = output.stdout.lines().collect();
    assert_eq!(urls.len(), 3, "{output:?}");
    let slug = |url: &str| url.rsplit('/').next().unwrap().to_owned();
    assert_eq!(fixture.fetch_source(&slug(urls[0])).await, "# Hello\n");
    assert_eq!(fixture.fetch_source(&slug(urls[1])).await, "a,b\n1,2\n");
    assert_eq!(
        fixture.fetch_source(&slug(urls[2])).await,
        "```rust\nfn main() {}\n```\n"
    );
    assert!(output.stderr.contains("svc unpublish"), "{output:?}");
    let published = fixture.json(&["publish", "hello.md", "table.csv"]).await;
    let titles = [
        &published["published"][0]["title"],
        &published["published"][1]["title"],
    ];
    assert_eq!(titles, ["Hello", "table.csv"]);
}

#[tokio::test]
async fn a_share_is_made_as_it_is_wanted() {
    let fixture = ClientFixture::new().await;
    let arguments = [
        "publish",
        "-",
        "--name",
        "note",
        "--title",
        "A note",
        "--type",
        "json",
        "--expires-in",
        "2h",
        "--json",
    ];
    let output = run_with_input(fixture.command(&arguments), "{\"a\": 1}")
        .await
        .json();
    let share = &output["published"][0];
    assert_eq!([&share["slug"], &share["title"]], ["note", "A note"]);
    assert_eq!(fixture.fetch_source("note").await, "{\"a\": 1}");
    let day = |name: &str| text(&share[name])[..13].to_owned();
    assert_ne!(day("created_at"), day("expires_at"));
    // What comes without a name is Markdown.
    let output = run_with_input(
        fixture.command(&["publish", "-", "--name", "words"]),
        "# Words",
    )
    .await;
    assert!(output.success, "{output:?}");
    let page = fixture.server.get("/words").await.expect(200);
    assert!(page.html().contains("<h1"), "{}", page.html());
    fixture.write("a.md", "# Once");
    let once = fixture
        .json(&["publish", "a.md", "--one-time", "--name", "once"])
        .await;
    assert_eq!(once["published"][0]["slug"], "once");
    fixture.server.get("/once/raw").await.expect(404);
}

#[tokio::test]
async fn a_password_is_no_argument() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# Secret");
    fixture.write("password", "opensesame\nnot this\n");
    let typed = run_with_input(
        fixture.command(&["publish", "a.md", "--name", "typed", "--password"]),
        "opensesame\n",
    )
    .await;
    assert!(typed.success, "{typed:?}");
    fixture
        .run_for_stdout(&[
            "publish",
            "a.md",
            "--name",
            "read",
            "--password-file",
            "password",
        ])
        .await;
    for slug in ["typed", "read"] {
        fixture
            .server
            .get(&format!("/{slug}/raw"))
            .await
            .expect(401);
        let unlock = format!("/api/v1/auth/{slug}");
        fixture
            .server
            .json(&unlock, &json!({"password": "opensesame"}))
            .await
            .expect(200);
    }
    fixture
        .run_for_failure(2, &["publish", "a.md", "--password=opensesame"])
        .await;
    let both = run_with_input(
        fixture.command(&["publish", "-", "--password"]),
        "opensesame\n",
    )
    .await;
    assert_eq!(both.code, Some(1), "{both:?}");
}

#[tokio::test]
async fn a_share_is_deleted_by_its_token() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# Gone soon");
    let made = fixture.json(&["publish", "a.md", "--name", "gone"]).await;
    let (id, token) = (
        text(&made["published"][0]["id"]),
        text(&made["published"][0]["delete_token"]),
    );
    let wrong = format!("svcd_{}", "0".repeat(43));
    let refused = run_with_input(fixture.command(&["unpublish", &id]), &wrong).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(!refused.stderr.contains(&wrong));
    fixture.server.get("/gone").await.expect(200);
    let done = run_with_input(
        fixture.command_without_credential(&["unpublish", &id, "--server", &fixture.url()]),
        &token,
    )
    .await;
    assert!(done.success, "{done:?}");
    fixture.server.get("/gone").await.expect(404);
}

#[tokio::test]
async fn a_share_is_claimed_and_a_page_is_made() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    fixture.write("a.md", "# News");
    let made = fixture.json(&["publish", "a.md", "--name", "news"]).await;
    let (id, token) = (
        text(&made["published"][0]["id"]),
        text(&made["published"][0]["delete_token"]),
    );
    let claimed = run_with_input(
        fixture.command(&["frontend", "claim", &id, "--project", "Shop"]),
        &token,
    )
    .await;
    assert!(
        claimed.success && claimed.stdout.ends_with("/news\n"),
        "{claimed:?}"
    );
    let page = fixture
        .json(&["publish", "a.md", "--project", "shop-acme"])
        .await;
    assert_eq!(page["published"][0]["slug"], "a");
    assert_eq!(page["published"][0]["state"], "active");
}

#[tokio::test]
async fn the_link_is_copied_and_opened_by_the_desktop() {
    let fixture = ClientFixture::new().await;
    fixture.write("a.md", "# A");
    for (program, script) in [
        ("wl-copy", "#!/bin/sh\nexec /bin/cat > clipboard\n"),
        ("xdg-open", "#!/bin/sh\nprintf %s \"$1\" > opened\n"),
    ] {
        fixture.write(&format!("bin/{program}"), script);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fixture.path_of(&format!("bin/{program}")), executable).unwrap();
    }
    let mut command = fixture.command(&["publish", "a.md", "--copy", "--open"]);
    command
        .env("PATH", fixture.path_of("bin"))
        .env("WAYLAND_DISPLAY", "wayland-0");
    let output = run_command(command).await;
    assert!(output.success, "{output:?}");
    assert_eq!(fixture.read("clipboard"), output.stdout.trim_end());
    assert_eq!(fixture.read("opened"), output.stdout.trim_end());
    // Without a desktop it is published all the same.
    let mut command = fixture.command(&["publish", "a.md", "--copy", "--open"]);
    command.env("PATH", fixture.path_of("nothing"));
    let output = run_command(command).await;
    assert!(
        output.success && output.stderr.matches("warning:").count() == 2,
        "{output:?}"
    );
}
