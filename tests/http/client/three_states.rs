//! `svc apply` between what the folder has, what the server has, and what both had when they last met.

use serde_json::{Value, json};
use svc_tests::run_command;

use super::apply::start_with_folder;
use super::concurrent_changes::serve_with_record;
use super::{ClientFixture, list_files};
use crate::owner::text;
use crate::svc;

/// Publishes a page as somebody else does, from another folder.
async fn release(fixture: &ClientFixture, slug: &str, text: &str) {
    let file = format!("elsewhere/{slug}.md");
    fixture.write(&file, text);
    let words = ["push", &file, "--slug", slug, "-m", "From elsewhere"];
    fixture
        .run_for_stdout(&[&words[..], &["--project", "Guest book"]].concat())
        .await;
}

/// Defines an action as somebody else does.
async fn define(fixture: &ClientFixture, name: &str, sql: &str) {
    let file = format!("elsewhere/{name}.sql");
    fixture.write(&file, sql);
    let words = ["action", "define", &file, "--project", "Guest book"];
    fixture.run_for_stdout(&words).await;
}

/// SQL that an action has on the server.
async fn sql_of(fixture: &ClientFixture, name: &str) -> Value {
    fixture.json(&["action", "show", name]).await["sql"].clone()
}

/// The file that says what both had.
fn meeting_file(fixture: &ClientFixture) -> String {
    let files = list_files(&fixture.path_of(".svc"));
    let mut files = files.into_iter().filter(|name| name.ends_with(".json"));
    format!(".svc/{}", files.next().expect("a file of the meetings"))
}

#[tokio::test]
async fn what_only_the_server_has_changed_is_left_alone_and_said() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    release(&fixture, "about", "# About them\n").await;
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    let output = fixture.run(&["apply"]).await;
    assert!(output.success, "{output:?}");
    for line in [
        "= page      about (server is newer since 20",
        "= action    recent (server is newer since 20",
    ] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
    let plan = fixture.json(&["apply", "--yes"]).await;
    let lines = plan["plan"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "{plan}");
    for line in lines {
        assert_eq!(line["change"], "keep", "{line}");
        let detail = line["detail"].as_str().unwrap();
        assert!(detail.starts_with("server is newer"), "{line}");
    }
    // What the folder has changed is applied beside that.
    fixture.write("book.html", "<!doctype html><title>New</title>\n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.fetch_source("about").await, "# About them\n");
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 1 AS one\n");
    assert!(fixture.fetch_source("book").await.contains("New"));
    // A pull brings it, and then the folder may change it.
    fixture.run_for_stdout(&["pull", "--yes"]).await;
    assert_eq!(fixture.read("about.md"), "# About them\n");
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    fixture.write("about.md", "# About all of us\n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.fetch_source("about").await, "# About all of us\n");
    // What somebody has deleted is not made anew unasked.
    fixture
        .run_for_stdout(&["frontend", "delete", "about", "--yes"])
        .await;
    let plan = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(plan["plan"][0]["change"], "keep", "{plan}");
    let plan = fixture.json(&["apply", "--force", "--yes"]).await;
    assert_eq!(plan["plan"][0]["change"], "keep", "{plan}");
    fixture.server.get("/about").await.expect(404);
    // One that the folder has changed is a conflict, and the folder's counts if that is said.
    fixture.write("about.md", "# About us again\n");
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("page about: ") && refused.contains(" Remove it from svc.toml."),
        "{refused}"
    );
    fixture.run_for_stdout(&["apply", "--force", "--yes"]).await;
    assert_eq!(fixture.fetch_source("about").await, "# About us again\n");
}

#[tokio::test]
async fn force_replaces_only_what_is_named_as_a_conflict() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    release(&fixture, "about", "# About them\n").await;
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    fixture
        .run_for_stdout(&["action", "delete", "sign", "--yes"])
        .await;
    let describe = ["project", "update", "--description", "Everybody"];
    fixture.run_for_stdout(&describe).await;
    fixture.write("about.md", "# About all of us\n");
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("page about: ") && !refused.contains("recent"),
        "{refused}"
    );
    let plan = fixture.json(&["apply", "--force", "--yes"]).await;
    let lines = plan["plan"].as_array().unwrap();
    let changed: Vec<_> = lines
        .iter()
        .filter(|line| line["change"] != "keep")
        .map(|line| &line["name"])
        .collect();
    assert_eq!(changed, ["about"], "{plan}");
    assert_eq!(lines.len(), 4, "{plan}");
    assert_eq!(fixture.fetch_source("about").await, "# About all of us\n");
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 1 AS one\n");
    fixture
        .run_for_failure(4, &["action", "show", "sign"])
        .await;
    let project = fixture.json(&["project", "show"]).await;
    assert_eq!(project["description"], "Everybody");
}

/// A conflict ends by a change of the folder, and each line says by which.
#[tokio::test]
async fn a_conflict_says_who_it_is_with_and_how_it_ends() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    define(&fixture, "recent", "SELECT 2 AS two\n").await;
    for arguments in [
        &["action", "rollback", "recent", "2"][..],
        &["action", "delete", "sign", "--yes"],
        &["frontend", "delete", "about", "--yes"],
        &["project", "update", "--description", "Everybody"],
    ] {
        fixture.run_for_stdout(arguments).await;
    }
    fixture.write("actions/recent.sql", "SELECT 3 AS three\n");
    fixture.write(
        "actions/sign.sql",
        "INSERT INTO notes (text) VALUES ('me')\n",
    );
    fixture.write("about.md", "# About all of us\n");
    let manifest = fixture.read("svc.toml");
    let manifest = manifest.replace("Who was here", "Nobody");
    fixture.write("svc.toml", &manifest);
    // Only administrators may know who it was.
    let make = ["key", "create", "acme", "--role", "admin", "--json"];
    let admin = svc().run(fixture.data.path(), &make).await.json();
    let mut asked = fixture.command(&["apply", "--yes"]);
    asked.env("SVC_CREDENTIAL", text(&admin["credential"]));
    let refused = run_command(asked).await;
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let line = |begin: &str| {
        let mut lines = refused.stderr.lines();
        let line = lines.find(|line| line.trim_start().starts_with(begin));
        line.unwrap_or_else(|| panic!("{begin}: {refused:?}"))
    };
    for (part, said, advice) in [
        ("action recent: ", "the server's was released 20", ""),
        (
            "action sign: ",
            "the server's was ended 20",
            "Remove its file.",
        ),
        (
            "page about: ",
            "the server's was ended 20",
            "Remove it from svc.toml.",
        ),
        (
            "project description: ",
            "the server's settings were last changed 20",
            "Change it in svc.toml.",
        ),
    ] {
        let line = line(part);
        let is_told = line.contains(said) && line.contains(" by ") && line.ends_with(advice);
        assert!(is_told, "{line}");
    }
    let unknown = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    for said in [
        "action sign: the folder has changed it, and it is not on the server any more. Remove its file.",
        "project description: both have changed it since they last met. Change it in svc.toml.",
    ] {
        assert!(unknown.contains(said), "{said}: {unknown}");
    }
    // A pull says the same of what it cannot bring.
    let pulled = fixture.run(&["pull", "--yes"]).await;
    for said in [
        "`description` differs from svc.toml: the server has `Everybody`.",
        "The page `about` is not on the server any more: remove its line from svc.toml",
        "The action `sign` is not on the server any more: remove actions/sign.sql",
    ] {
        assert!(pulled.stderr.contains(said), "{said}: {pulled:?}");
    }
    let about = "about = { file = \"about.md\", title = \"About us\" }\n";
    let manifest = manifest.replace("Nobody", "Everybody").replace(about, "");
    fixture.write("svc.toml", &manifest);
    std::fs::remove_file(fixture.path_of("actions/sign.sql")).unwrap();
    assert_eq!(fixture.json(&["apply", "--yes"]).await["plan"], json!([]));
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 1 AS one\n");
}

#[tokio::test]
async fn what_both_have_changed_is_a_conflict() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    release(&fixture, "about", "# About them\n").await;
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    fixture.write("about.md", "# About all of us\n");
    fixture.write("actions/recent.sql", "SELECT 2 AS two\n");
    fixture.write("book.html", "<!doctype html><title>New</title>\n");
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    for said in [
        "error: Both have changed: ",
        "page about: both have changed it; the server's was released 20",
        ": From elsewhere",
        "action recent: both have changed it; the server's was released 20",
        "`svc pull`",
        "--force",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let refused = fixture
        .run_for_failure(5, &["apply", "--yes", "--json"])
        .await;
    let refused: Value = serde_json::from_str(&refused).unwrap();
    let conflicts = refused["error"]["conflicts"].as_array().unwrap();
    let named: Vec<_> = conflicts
        .iter()
        .map(|one| (&one["kind"], &one["name"], &one["reason"]))
        .collect();
    assert_eq!(
        named,
        [
            (&json!("action"), &json!("recent"), &json!("both_changed")),
            (&json!("page"), &json!("about"), &json!("both_changed")),
        ]
    );
    assert!(
        conflicts.iter().all(|one| one["released_at"].is_string()),
        "{refused}"
    );
    // Nothing at all was applied.
    assert!(!fixture.fetch_source("book").await.contains("New"));
    assert_eq!(fixture.fetch_source("about").await, "# About them\n");
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 1 AS one\n");
    // The same change on both sides is none.
    release(&fixture, "about", "# About all of us\n").await;
    define(&fixture, "recent", "SELECT 2 AS two\n").await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert!(fixture.fetch_source("book").await.contains("New"));
    // The folder's counts, if that is said.
    release(&fixture, "about", "# About them\n").await;
    fixture.write("about.md", "# About me\n");
    fixture.run_for_failure(5, &["apply", "--yes"]).await;
    fixture.run_for_stdout(&["apply", "--yes", "--force"]).await;
    assert_eq!(fixture.fetch_source("about").await, "# About me\n");
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
}

#[tokio::test]
async fn without_a_meeting_an_earlier_text_is_stale() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let (first_page, first_action) = (fixture.read("about.md"), fixture.read("actions/recent.sql"));
    release(&fixture, "about", "# About them\n").await;
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    let forget = || std::fs::remove_dir_all(fixture.path_of(".svc")).unwrap();
    forget();
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    for said in [
        "error: The folder is older: ",
        "page about: the folder has an earlier text; the server's was released 20",
        "action recent: the folder has an earlier text",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    // Any other text is the folder's change.
    fixture.write("about.md", "# About all of us\n");
    fixture.write("actions/recent.sql", "SELECT 3 AS three\n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.fetch_source("about").await, "# About all of us\n");
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 3 AS three\n");
    // With a meeting, an earlier text is a change like any other.
    fixture.write("about.md", &first_page);
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.fetch_source("about").await, first_page);
    // A file that is broken is as good as none, and that is said.
    fixture.write("actions/recent.sql", &first_action);
    let file = meeting_file(&fixture);
    fixture.write(&file, "{");
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("is not used: it is not whole") && refused.contains("action recent"),
        "{refused}"
    );
    fixture.run_for_stdout(&["apply", "--yes", "--force"]).await;
    assert_eq!(sql_of(&fixture, "recent").await, first_action);
    assert!(fixture.read(&file).contains("\"has_met\": true"));
}

#[tokio::test]
async fn an_action_without_a_file_ends_unless_somebody_has_changed_it() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let file = fixture.path_of("actions/recent.sql");
    std::fs::remove_file(&file).unwrap();
    let asked = fixture.run(&["apply"]).await;
    assert_eq!(asked.code, Some(8), "{asked:?}");
    assert!(asked.stderr.contains("- action    recent"), "{asked:?}");
    define(&fixture, "recent", "SELECT 1 AS one\n").await;
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(refused.contains("action recent: "), "{refused}");
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 1 AS one\n");
    // After a look it may end.
    fixture.run_for_stdout(&["pull", "--yes"]).await;
    std::fs::remove_file(&file).unwrap();
    let plan = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(
        plan["plan"],
        json!([{"change": "remove", "kind": "action", "name": "recent"}])
    );
    fixture
        .run_for_failure(4, &["action", "show", "recent"])
        .await;
    // An action that the folder never had stays.
    define(&fixture, "theirs", "SELECT 1 AS one\n").await;
    let plan = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(plan["plan"], json!([]));
    assert!(
        plan["notes"][0].as_str().unwrap().contains("`theirs`"),
        "{plan}"
    );
    // A name that comes again is a new action.
    fixture.write("actions/recent.sql", "SELECT 4 AS four\n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(sql_of(&fixture, "recent").await, "SELECT 4 AS four\n");
}

#[tokio::test]
async fn a_page_that_has_left_is_named_and_deleted_only_when_it_is_pruned() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let manifest = fixture.read("svc.toml");
    let about = "about = { file = \"about.md\", title = \"About us\" }\n";
    fixture.write("svc.toml", &manifest.replace(about, ""));
    let plan = fixture.json(&["apply", "--yes"]).await;
    let line = &plan["plan"][0];
    assert_eq!(
        (&line["change"], &line["name"]),
        (&json!("keep"), &json!("about"))
    );
    assert_eq!(fixture.fetch_source("about").await, "# About\n");
    let asked = fixture.run(&["apply", "--prune"]).await;
    assert_eq!(asked.code, Some(8), "{asked:?}");
    assert!(asked.stderr.contains("- page      about"), "{asked:?}");
    // Somebody else's text is not deleted unseen.
    release(&fixture, "about", "# About them\n").await;
    let refused = fixture
        .run_for_failure(5, &["apply", "--prune", "--yes"])
        .await;
    assert!(refused.contains("page about: "), "{refused}");
    let pruned = ["apply", "--prune", "--force", "--yes"];
    fixture.run_for_stdout(&pruned).await;
    fixture.server.get("/about").await.expect(404);
    assert_eq!(fixture.json(&["apply", "--prune"]).await["plan"], json!([]));
}

#[tokio::test]
async fn an_apply_without_changes_asks_three_times() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let (address, seen) = serve_with_record(fixture.url()).await;
    let run = async |arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.env("SVC_SERVER", format!("http://{address}"));
        let output = run_command(command).await;
        assert!(output.success, "{output:?}");
        std::mem::take(&mut *seen.lock().unwrap())
    };
    // At this address they have not met before, and have the same all the same.
    for _ in 0..2 {
        let requests = run(&["apply"]).await;
        assert_eq!(requests.len(), 3, "{requests:?}");
        assert!(
            requests.iter().all(|line| line.starts_with("GET ")),
            "{requests:?}"
        );
    }
    // A change is one dry run and one release, between two looks.
    fixture.write("about.md", "# About all of us\n");
    fixture.write("actions/recent.sql", "SELECT 2 AS two\n");
    let requests = run(&["apply", "--yes"]).await;
    let releases = requests.iter().filter(|line| line.ends_with("/release"));
    assert_eq!((requests.len(), releases.count()), (8, 2), "{requests:?}");
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_no_conflict() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    fixture.write("about.md", "# About all of us\n");
    let mut dying = fixture.command(&["apply", "--yes"]);
    dying.env("SVC_FAULT", "apply.release");
    let output = run_command(dying).await;
    assert_eq!(output.code, None, "{output:?}");
    assert_eq!(fixture.fetch_source("about").await, "# About all of us\n");
    // The folder goes on from its own release.
    fixture.write("about.md", "# About the rest of us\n");
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(
        fixture.fetch_source("about").await,
        "# About the rest of us\n"
    );
}

#[tokio::test]
async fn what_is_too_much_for_one_release_takes_several() {
    let fixture = ClientFixture::without_owner_rate_limit().await;
    fixture.write(
        "svc.toml",
        "project = \"Many\"\n[pages]\nhome = \"home.md\"\n",
    );
    fixture.write("home.md", "# Home\n");
    fixture.write(
        "migrations/0001.sql",
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);\n",
    );
    for number in 0..120 {
        let name = format!("actions/a{number}.sql");
        fixture.write(&name, &format!("SELECT id, {number} AS n FROM notes\n"));
    }
    let plan = fixture.json(&["apply", "--yes"]).await;
    let note = plan["notes"][0].as_str().unwrap();
    assert!(note.starts_with("This takes 2 releases"), "{plan}");
    assert_eq!(plan["plan"].as_array().unwrap().len(), 123, "{plan}");
    let actions = fixture.json(&["action", "list"]).await;
    assert_eq!(actions["actions"].as_array().unwrap().len(), 120);
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
}
