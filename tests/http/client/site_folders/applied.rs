//! Sites of `svc.toml`: `svc apply`, `svc pull` and `svc dev`.

use rustix::process::Signal;
use serde_json::{Value, json};
use svc_tests::{ReadAnswer as _, run_command, wait_until};

use super::super::{ClientFixture, RunningCommand};
use super::{SiteFixture, matching};
use crate::owner::text;

const MANIFEST: &str = "project = \"Shop\"\nhome = \"app\"\n\n[pages]\nabout = \"about.md\"\napp = { folder = \"dist\", fallback = \"index.html\" }\n";

/// Starts with a folder that has a page and a site, and is applied.
async fn start_applied() -> SiteFixture {
    let fixture = SiteFixture::start().await;
    fixture.client.write("svc.toml", MANIFEST);
    fixture.client.write("about.md", "# About\n");
    fixture.write_all(&[("index.html", "one"), ("a.js", "run()"), (".env", "KEY")]);
    let done = fixture.client.run(&["apply", "--yes"]).await;
    assert!(done.success, "{done:?}");
    for said in [
        "+ page      about",
        "+ site      app (2 files, 8 B): dist",
        "Left out: .env",
    ] {
        assert!(done.stderr.contains(said), "{said}: {done:?}");
    }
    fixture
}

/// Plan of a folder.
async fn plan(client: &ClientFixture) -> Value {
    client.json(&["apply", "--plan"]).await["plan"].clone()
}

#[tokio::test]
async fn a_site_is_applied_with_the_rest_in_one_release() {
    let fixture = start_applied().await;
    assert_eq!(fixture.paths("app").await, ["a.js", "index.html"]);
    let project = fixture.client.json(&["project", "show", "Shop"]).await;
    assert_eq!(project["home"], "app");
    assert_eq!(plan(&fixture.client).await, json!([]));
    // A change goes by itself, with the page's.
    fixture.write_all(&[("index.html", "two")]);
    fixture.client.write("about.md", "# About us\n");
    let (done, sent) = fixture.record(&["apply", "--yes"]).await;
    assert!(done.success, "{done:?}");
    assert!(
        done.stderr
            .contains("~ site      app (+0 ~1 −0 files): dist"),
        "{done:?}"
    );
    assert_eq!(matching(&sent, "POST", "/release").len(), 2, "{sent:?}");
    let blobs = sent.iter().filter(|one| one.line.contains("/blobs/"));
    assert_eq!(blobs.count(), 1, "{sent:?}");
    assert_eq!(fixture.read("/app/a.js").await, "run()");
    // What was recorded went through a relay with an address of its own: the folder and the server meet here.
    let met = fixture.client.run_for_stdout(&["apply", "--yes"]).await;
    assert!(met.contains("nothing to do"), "{met}");
    // Options count, too.
    let manifest = MANIFEST.replace(", fallback = \"index.html\"", "");
    fixture.client.write("svc.toml", &manifest);
    let planned = plan(&fixture.client).await;
    assert_eq!(planned[0]["kind"], "site", "{planned}");
    fixture.client.run_for_stdout(&["apply", "--yes"]).await;
    let words = ["frontend", "content", "app"];
    let content = fixture.client.json(&words).await;
    assert_eq!(content["options"], json!({}));
    assert_eq!(plan(&fixture.client).await, json!([]));
}

#[tokio::test]
async fn a_colleagues_site_is_a_conflict_or_newer() {
    let fixture = start_applied().await;
    let elsewhere = fixture.client.path_of("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let push = async |text: &str| {
        std::fs::write(elsewhere.join("index.html"), text).unwrap();
        let words = ["push", ".", "--slug", "app", "--project", "Shop", "--force"];
        let mut command = fixture.client.command(&words);
        command.current_dir(&elsewhere);
        let output = run_command(command).await;
        assert!(output.success, "{output:?}");
    };
    push("theirs").await;
    let newer = fixture.client.run(&["apply", "--yes"]).await;
    assert!(
        newer.stderr.contains("= site      app (server is newer"),
        "{newer:?}"
    );
    fixture.write_all(&[("index.html", "ours")]);
    let refused = fixture.client.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("site app: both have changed it"),
        "{refused}"
    );
    assert_eq!(fixture.read("/app/index.html").await, "theirs");
    // What the server has is brought, and files of the folder's own stay.
    fixture.client.run_for_failure(8, &["pull"]).await;
    let pulled = fixture.client.run(&["pull", "--yes"]).await;
    assert!(
        pulled.success && pulled.stderr.contains("a.js"),
        "{pulled:?}"
    );
    assert_eq!(fixture.client.read("dist/index.html"), "theirs");
    assert_eq!(fixture.client.read("dist/a.js"), "run()");
    fixture.client.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.paths("app").await, ["a.js", "index.html"]);
    push("theirs again").await;
    fixture.write_all(&[("index.html", "ours again")]);
    let forced = ["apply", "--yes", "--force"];
    fixture.client.run_for_stdout(&forced).await;
    assert_eq!(fixture.read("/app/index.html").await, "ours again");
}

#[tokio::test]
async fn a_site_is_pulled_into_a_folder_of_its_own() {
    let fixture = start_applied().await;
    let words = ["pull", "copy", "--project", "Shop"];
    let pulled = fixture.client.run_for_stdout(&words).await;
    assert!(pulled.contains("+ copy/app/a.js"), "{pulled}");
    let manifest = fixture.client.read("copy/svc.toml");
    for line in ["folder = \"app\"", "fallback = \"index.html\""] {
        assert!(manifest.contains(line), "{line}: {manifest}");
    }
    assert_eq!(fixture.client.read("copy/app/index.html"), "one");
    for words in [["pull", "copy"], ["apply", "copy"]] {
        let again = fixture.client.run_for_stdout(&words).await;
        assert!(again.contains("nothing to do"), "{words:?}: {again}");
    }
    // A folder that names the project gets the site that it lacks.
    fixture.client.write(
        "other/svc.toml",
        "project = \"Shop\"\n[pages]\nabout = \"about.md\"\n",
    );
    let words = ["pull", "other", "--yes"];
    fixture.client.run_for_stdout(&words).await;
    assert_eq!(fixture.client.read("other/app/a.js"), "run()");
    fixture.client.write("copy/app/index.html", "two");
    fixture
        .client
        .run_for_stdout(&["apply", "copy", "--yes"])
        .await;
    let (pulled, sent) = fixture.record(&["pull", "other", "--yes"]).await;
    assert!(pulled.success, "{pulled:?}");
    assert_eq!(fixture.client.read("other/app/index.html"), "two");
    let fetched = sent.iter().filter(|one| one.line.contains("/files/"));
    assert_eq!(fetched.count(), 1, "{sent:?}");
}

#[tokio::test]
async fn what_no_manifest_can_say_of_a_site_is_told_with_its_place() {
    let fixture = SiteFixture::start().await;
    fixture.write_all(&[("index.html", "one")]);
    fixture.client.write("public/a.txt", "a");
    for (entry, code, said) in [
        ("{ folder = \"none\" }", 4, "svc.toml:3:18: No such folder"),
        ("{ folder = \".\" }", 1, "svc.toml:3"),
        ("{ folder = \"../dist\" }", 1, "without `..`"),
        ("{ folder = \".hidden\" }", 1, "hidden"),
        ("{ folder = \"dist\", file = \"a.md\" }", 1, "folder"),
        (
            "{ folder = \"public\", fallback = \"index.html\" }",
            1,
            "fallback",
        ),
    ] {
        let manifest = format!("project = \"Shop\"\n[pages]\napp = {entry}\n");
        fixture.client.write("svc.toml", &manifest);
        let refused = fixture
            .client
            .run_for_failure(code, &["apply", "--yes"])
            .await;
        assert!(refused.contains(said), "{entry}: {refused}");
    }
    let list = fixture
        .client
        .json(&["frontend", "list", "--project", "Shop"])
        .await;
    assert_eq!(list["frontends"], json!([]));
}

#[tokio::test]
async fn a_site_is_served_while_it_is_worked_on() {
    let fixture = ClientFixture::new().await;
    fixture.write(
        "svc.toml",
        "project = \"Shop\"\n[pages]\napp = { folder = \"dist\" }\n",
    );
    fixture.write("dist/index.html", "one");
    fixture.write("dist/a.js", "run()");
    let command = fixture.command_without_credential(&["dev", "--json"]);
    let mut dev = RunningCommand::start(&command);
    let told: Value = serde_json::from_str(&dev.wait_for_lines(1).await[0]).unwrap();
    let server = text(&told["server"]);
    let client = fixture.server.client();
    let shows = async |path: &str, text: &str| {
        wait_until("the save to be live", async || {
            let answer = client.get(format!("{server}{path}")).answer().await;
            (answer.status == 200 && answer.text() == text).then_some(())
        })
        .await;
    };
    shows("/app/a.js", "run()").await;
    fixture.write("dist/a.js", "walk()");
    shows("/app/a.js", "walk()").await;
    // A build takes the folder away for a moment.
    std::fs::remove_dir_all(fixture.path_of("dist")).unwrap();
    dev.wait_for_stderr("No such folder").await;
    fixture.write("dist/index.html", "two");
    shows("/app/index.html", "two").await;
    dev.signal(Signal::TERM);
    assert!(dev.wait_for_exit().await.success(), "{}", dev.stderr());
}
