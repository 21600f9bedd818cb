//! `svc apply` and `svc pull`.

use serde_json::json;
use svc_tests::run_command;

use super::ClientFixture;

const MANIFEST: &str = "project = \"Guest book\"\ndescription = \"Who was here\"\nhome = \"book\"\nrealtime = true\nagents = true\n\n[pages]\nbook = \"book.html\"\nabout = { file = \"about.md\", title = \"About us\" }\n";
const NOTES: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);\n";

/// Creates a project folder with every kind of file.
pub(super) async fn start_with_folder() -> ClientFixture {
    let fixture = ClientFixture::new().await;
    write(&fixture);
    fixture
}

fn write(fixture: &ClientFixture) {
    fixture.write("svc.toml", MANIFEST);
    fixture.write("book.html", "<!doctype html><title>Guest book</title>\n");
    fixture.write("about.md", "# About\n");
    fixture.write("migrations/0001_notes.sql", NOTES);
    fixture.write(
        "migrations/0002_likes.sql",
        "ALTER TABLE notes ADD COLUMN likes INTEGER NOT NULL DEFAULT 0;\n",
    );
    fixture.write(
        "actions/sign.sql",
        "INSERT INTO notes (text) VALUES (:text) RETURNING id\n",
    );
    fixture.write(
        "actions/recent.sql",
        "-- The newest\nSELECT id, text, likes FROM notes ORDER BY id DESC LIMIT 20\n",
    );
}

/// Everything that a server has of the project, but for what counts and tells the time.
async fn project_state(fixture: &ClientFixture) -> String {
    let mut all = String::new();
    for arguments in [
        &["project", "list"][..],
        &["frontend", "list"],
        &["frontend", "releases", "book"],
        &["revision", "list", "about"],
        &["backend", "show"],
    ] {
        all += &fixture.run_for_stdout(arguments).await;
    }
    all
}

#[tokio::test]
async fn the_server_becomes_as_the_folder_says_and_stays_so() {
    let fixture = start_with_folder().await;
    // The plan comes first, and nobody has said yes.
    let planned = fixture.run(&["apply"]).await;
    assert_eq!(planned.code, Some(8), "{planned:?}");
    for line in [
        "+ project   Guest book",
        "+ database  from 0001_notes.sql: migrations/0001_notes.sql",
        "+ migration 0002_likes.sql: migrations/0002_likes.sql",
        "+ action    sign: actions/sign.sql",
        "+ page      about: about.md",
        "~ rooms     on",
        "~ tools     on",
        "~ project   home",
    ] {
        assert!(planned.stderr.contains(line), "{line}: {planned:?}");
    }
    assert_eq!(
        fixture.json(&["project", "list"]).await["projects"],
        json!([])
    );
    let plan = fixture.json(&["apply", "--plan"]).await;
    assert_eq!(plan["applied"], false);
    assert_eq!(
        plan["plan"][0],
        json!({"change": "create", "kind": "project", "name": "Guest book"})
    );
    assert_eq!(
        plan["plan"][1]["file"], "migrations/0001_notes.sql",
        "{plan}"
    );
    fixture
        .run_for_stdout(&["apply", "--yes", "-m", "First"])
        .await;
    assert_eq!(
        fixture
            .run_for_stdout(&["action", "call", "sign", "text=Hi"])
            .await,
        "id\n1\n"
    );
    assert_eq!(fixture.fetch_source("about").await, "# About\n");
    let project = fixture.json(&["project", "show", "Guest book"]).await;
    assert_eq!(
        [&project["home"], &project["description"]],
        ["book", "Who was here"]
    );
    let page = fixture.json(&["frontend", "show", "about"]).await;
    assert_eq!(page["title"], "About us");
    // The second time there is nothing to do, and nothing is done.
    let before = project_state(&fixture).await;
    let again = fixture.json(&["apply", "--yes"]).await;
    assert_eq!(again["plan"], json!([]));
    assert_eq!(project_state(&fixture).await, before);
}

#[tokio::test]
async fn changes_are_made_and_refusals_come_before_them() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    fixture.write(
        "book.html",
        "<!doctype html><title>Guest book</title>\n<h1>Welcome</h1>\n",
    );
    fixture.write(
        "actions/sign.sql",
        "INSERT INTO notes (text) VALUES (trim(:text)) RETURNING id\n",
    );
    fixture.write(
        "migrations/0003_at.sql",
        "ALTER TABLE notes ADD COLUMN at TEXT;\n",
    );
    std::fs::remove_file(fixture.path_of("actions/recent.sql")).unwrap();
    fixture.write(
        "svc.toml",
        &MANIFEST.replace(
            "about = { file = \"about.md\", title = \"About us\" }\n",
            "",
        ),
    );
    let done = fixture.run(&["apply", "--yes", "-m", "Welcome"]).await;
    assert!(done.success, "{done:?}");
    for line in [
        "~ page      book (+1 −0 lines): book.html",
        "~ action    sign",
        "+ migration 0003_at.sql",
        "- action    recent (its file is gone)",
        "= page      about (it left svc.toml and stays: `--prune` deletes it)",
    ] {
        assert!(done.stderr.contains(line), "{line}: {done:?}");
    }
    assert_eq!(fixture.fetch_source("about").await, "# About\n");
    fixture
        .run_for_failure(4, &["action", "call", "recent"])
        .await;
    let releases = fixture
        .run_for_stdout(&["frontend", "releases", "book"])
        .await;
    assert!(releases.contains("Welcome"), "{releases}");
    // A refusal comes before anything has changed.
    let before = project_state(&fixture).await;
    fixture.write("book.html", "<!doctype html><title>Changed</title>\n");
    fixture.write("actions/bad.sql", "SELECT * FROM nowhere");
    let refused = fixture.run_for_failure(1, &["apply", "--yes"]).await;
    assert!(
        refused.starts_with("error: actions/bad.sql:1:15: ")
            && refused.matches("no such table").count() == 1,
        "{refused}"
    );
    std::fs::remove_file(fixture.path_of("actions/bad.sql")).unwrap();
    fixture.write("migrations/0004_drop.sql", "DROP TABLE notes;");
    let refused = fixture.run_for_failure(1, &["apply", "--yes"]).await;
    assert!(
        refused.starts_with("error: migrations/0004_drop.sql:1:"),
        "{refused}"
    );
    std::fs::remove_file(fixture.path_of("migrations/0004_drop.sql")).unwrap();
    assert_eq!(project_state(&fixture).await, before);
    // An action of a table that is still to come is tried with it: neither is made.
    fixture.write(
        "migrations/0004_more.sql",
        "CREATE TABLE more (id INTEGER PRIMARY KEY);\n",
    );
    fixture.write("actions/bad.sql", "SELECT * FROM nowhere");
    let refused = fixture.run_for_failure(1, &["apply", "--yes"]).await;
    assert!(
        refused.starts_with("error: actions/bad.sql:1:15: "),
        "{refused}"
    );
    assert_eq!(project_state(&fixture).await, before);
    std::fs::remove_file(fixture.path_of("actions/bad.sql")).unwrap();
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert!(
        fixture
            .run_for_stdout(&["apply"])
            .await
            .starts_with("nothing to do")
    );
    let before = project_state(&fixture).await;
    // A migration is never changed after the fact.
    fixture.write(
        "migrations/0001_notes.sql",
        "CREATE TABLE other (id INTEGER PRIMARY KEY);\n",
    );
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(refused.contains("0001_notes.sql"), "{refused}");
    assert_eq!(project_state(&fixture).await, before);
}

#[tokio::test]
async fn a_killed_apply_goes_on() {
    let points = ["project", "release", "rooms", "tools"];
    let fixture = start_with_folder().await;
    for point in points {
        let mut dying = fixture.command(&["apply", "--yes"]);
        dying.env("SVC_FAULT", format!("apply.{point}"));
        let output = run_command(dying).await;
        assert_eq!(output.code, None, "{point}: {output:?}");
    }
    let done = fixture.run(&["apply", "--yes"]).await;
    assert!(done.success, "{done:?}");
    assert!(
        !done.stderr.contains("+ project") && !done.stderr.contains("0001_notes.sql"),
        "{done:?}"
    );
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    let list = fixture.json(&["frontend", "list"]).await;
    assert_eq!(list["frontends"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(
        fixture.json(&["project", "list"]).await["projects"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let detail = fixture.json(&["backend", "show"]).await;
    assert_eq!(detail["migrations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_slug_that_is_taken_gets_a_suffix_and_keeps_it() {
    let fixture = start_with_folder().await;
    fixture.write("other.md", "# Somebody else's");
    fixture
        .run_for_stdout(&["publish", "other.md", "--name", "book"])
        .await;
    let done = fixture.run(&["apply", "--yes"]).await;
    assert!(done.stderr.contains("the page is `book-2`"), "{done:?}");
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    assert_eq!(
        fixture.json(&["project", "show", "Guest book"]).await["home"],
        "book-2"
    );
    fixture.write("book.html", "<!doctype html><title>New</title>\n");
    let done = fixture.run(&["apply", "--yes"]).await;
    assert!(done.stderr.contains("taken for `book`"), "{done:?}");
    let (old, new) = (
        "<!doctype html><title>Guest book</title>\n",
        "<!doctype html><title>New</title>\n",
    );
    assert_eq!(fixture.fetch_source("book-2").await, new);
    // A fresh copy of the folder knows the page by the texts that it had.
    let forget = || std::fs::remove_dir_all(fixture.path_of(".svc")).unwrap();
    forget();
    assert_eq!(fixture.json(&["apply", "--plan"]).await["plan"], json!([]));
    fixture.write("book.html", old);
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(
        refused.contains("The folder is older") && refused.contains("page book-2: "),
        "{refused}"
    );
    // With any other text it could be another page's.
    fixture.write("book.html", "<!doctype html><title>Newer</title>\n");
    let refused = fixture.run_for_failure(5, &["apply", "--yes"]).await;
    assert!(refused.contains("`book-2`, which never had"), "{refused}");
    assert_eq!(fixture.fetch_source("book-2").await, new);
    let named = MANIFEST
        .replace("\"book\"", "\"book-2\"")
        .replace("book = ", "book-2 = ");
    fixture.write("svc.toml", &named);
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert!(fixture.fetch_source("book-2").await.contains("Newer"));
}

/// The page of a colleague may have a slug that looks like the folder's with a suffix.
#[tokio::test]
async fn a_page_that_looks_suffixed_is_left_to_its_author() {
    let fixture = ClientFixture::new().await;
    let theirs = "# Theirs\n";
    fixture.write("one/c2.md", theirs);
    fixture.write(
        "one/svc.toml",
        "project = \"Shop\"\n[pages]\nchapter-2 = \"c2.md\"\n",
    );
    fixture.run_for_stdout(&["apply", "one", "--yes"]).await;
    fixture.write("two/c.md", "# Mine\n");
    fixture.write(
        "two/svc.toml",
        "project = \"Shop\"\n[pages]\nchapter = \"c.md\"\n",
    );
    for more in [&[][..], &["--force"]] {
        let words = [&["apply", "two", "--yes"][..], more].concat();
        let refused = fixture.run_for_failure(5, &words).await;
        assert!(
            refused.contains("`chapter-2`, which never had") && refused.contains("svc.toml"),
            "{refused}"
        );
    }
    let pulled = fixture.run(&["pull", "two", "--yes"]).await;
    assert!(
        pulled.success && pulled.stderr.contains("it counts as another page"),
        "{pulled:?}"
    );
    assert_eq!(fixture.read("two/c.md"), "# Mine\n");
    assert_eq!(fixture.read("two/chapter-2.md"), theirs);
    fixture.run_for_stdout(&["apply", "two", "--yes"]).await;
    assert_eq!(fixture.fetch_source("chapter").await, "# Mine\n");
    assert_eq!(fixture.fetch_source("chapter-2").await, theirs);
}

#[tokio::test]
async fn a_first_apply_that_is_refused_leaves_no_project() {
    let fixture = start_with_folder().await;
    fixture.write("actions/bad.sql", "SELECT * FROM nowhere");
    let planned = fixture.run(&["apply", "--plan"]).await;
    assert!(
        planned.success && planned.stderr.contains("The project is new: "),
        "{planned:?}"
    );
    for _ in 0..2 {
        let refused = fixture.run_for_failure(1, &["apply", "--yes"]).await;
        assert!(
            refused.contains("error: actions/bad.sql:1:15: ") && !refused.contains("stays"),
            "{refused}"
        );
        let listed = fixture.json(&["project", "list"]).await;
        assert_eq!(listed["projects"], json!([]));
    }
    std::fs::remove_file(fixture.path_of("actions/bad.sql")).unwrap();
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.json(&["apply"]).await["plan"], json!([]));
    // A project that was there stays.
    fixture
        .run_for_stdout(&["project", "create", "Other"])
        .await;
    fixture.write("svc.toml", &MANIFEST.replace("Guest book", "Other"));
    fixture.write("actions/bad.sql", "SELECT * FROM nowhere");
    fixture.run_for_failure(1, &["apply", "--yes"]).await;
    let listed = fixture.json(&["project", "list"]).await;
    assert_eq!(listed["projects"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn migrations_are_pulled_by_the_names_that_they_had() {
    let fixture = ClientFixture::new().await;
    fixture.write("one/svc.toml", "project = \"Shop\"\n");
    for (name, table) in [("1.sql", "a"), ("2_b.sql", "b")] {
        let sql = format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY);\n");
        fixture.write(&format!("one/migrations/{name}"), &sql);
    }
    fixture.run_for_stdout(&["apply", "one", "--yes"]).await;
    fixture
        .run_for_stdout(&["pull", "two", "--project", "Shop"])
        .await;
    let names = |folder: &str| super::list_files(&fixture.path_of(folder));
    assert_eq!(names("two/migrations"), ["1.sql", "2_b.sql"]);
    fixture.write(
        "two/migrations/3_c.sql",
        "CREATE TABLE c (id INTEGER PRIMARY KEY);\n",
    );
    fixture.run_for_stdout(&["apply", "two", "--yes"]).await;
    fixture.run_for_stdout(&["pull", "one", "--yes"]).await;
    assert_eq!(names("one/migrations"), ["1.sql", "2_b.sql", "3_c.sql"]);
    assert_eq!(fixture.json(&["apply", "one"]).await["plan"], json!([]));
}

#[tokio::test]
async fn a_folder_becomes_as_the_server_is() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let pulled = fixture
        .json(&["pull", "copy", "--project", "Guest book"])
        .await;
    assert_eq!(pulled["new"].as_array().unwrap().len(), 7, "{pulled}");
    assert_eq!(fixture.read("copy/migrations/0001_notes.sql"), NOTES);
    assert_eq!(fixture.read("copy/about.md"), "# About\n");
    for (command, folder) in [
        ("pull", "copy"),
        ("apply", "copy"),
        ("pull", "."),
        ("apply", "."),
    ] {
        let said = fixture.run_for_stdout(&[command, folder]).await;
        assert!(
            said.starts_with("nothing to do"),
            "{command} {folder}: {said}"
        );
    }
    // Changes by others are pulled, once local files may be replaced.
    fixture.write("copy/about.md", "# About all of us\n");
    fixture.write(
        "copy/migrations/0003.sql",
        "CREATE TABLE more (id INTEGER PRIMARY KEY);\n",
    );
    fixture.write("copy/news.md", "# News\n");
    let manifest = fixture.read("copy/svc.toml");
    fixture.write("copy/svc.toml", &format!("{manifest}news = \"news.md\"\n"));
    fixture.run_for_stdout(&["apply", "copy", "--yes"]).await;
    let refused = fixture.run(&["pull"]).await;
    assert_eq!(refused.code, Some(8), "{refused:?}");
    assert_eq!(fixture.read("about.md"), "# About\n");
    fixture.run_for_stdout(&["pull", "--yes"]).await;
    assert_eq!(fixture.read("about.md"), "# About all of us\n");
    assert_eq!(fixture.read("news.md"), "# News\n");
    assert!(
        fixture.read("svc.toml").starts_with(MANIFEST),
        "what its author wrote stays"
    );
    assert!(
        fixture
            .run_for_stdout(&["apply"])
            .await
            .starts_with("nothing to do")
    );
    // Two have migrated at once.
    fixture.write(
        "migrations/0004.sql",
        "CREATE TABLE mine (id INTEGER PRIMARY KEY);\n",
    );
    fixture.write(
        "copy/migrations/0004.sql",
        "CREATE TABLE theirs (id INTEGER PRIMARY KEY);\n",
    );
    fixture.run_for_stdout(&["apply", "copy", "--yes"]).await;
    fixture.run_for_failure(5, &["apply", "--yes"]).await;
    fixture.run_for_failure(5, &["pull", "--yes"]).await;
    std::fs::rename(
        fixture.path_of("migrations/0004.sql"),
        fixture.path_of("migrations/0005_mine.sql"),
    )
    .unwrap();
    fixture.run_for_stdout(&["pull", "--yes"]).await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert!(
        fixture
            .run_for_stdout(&["backend", "show"])
            .await
            .contains("theirs")
    );
}

/// Everybody who may publish in a project would otherwise write what other programs of the folder read.
#[tokio::test]
async fn a_page_that_svc_toml_does_not_name_replaces_nothing() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    let (mine, theirs) = ("{\"name\": \"mine\"}", "{\"name\": \"theirs\"}");
    fixture.write("theirs.json", theirs);
    fixture
        .run_for_stdout(&[
            "publish",
            "theirs.json",
            "--project",
            "Shop",
            "--name",
            "package",
        ])
        .await;
    let manifest = "project = \"Shop\"\n";
    fixture.write("folder/svc.toml", manifest);
    fixture.write("folder/package.json", mine);
    let output = fixture.run(&["pull", "folder", "--yes"]).await;
    assert!(output.success, "{output:?}");
    let is_told = output.stderr.contains("folder/package.json is there")
        && output.stderr.contains("`package`");
    assert!(is_told, "{output:?}");
    assert_eq!(fixture.read("folder/package.json"), mine);
    assert_eq!(fixture.read("folder/svc.toml"), manifest);
    // The file from which the page was published is the page's.
    fixture.write("folder/package.json", theirs);
    fixture.run_for_stdout(&["pull", "folder", "--yes"]).await;
    let named = "[pages.package]\nfile = \"package.json\"";
    assert!(fixture.read("folder/svc.toml").contains(named));
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_folder() {
    let fixture = start_with_folder().await;
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    let outside = fixture.home.path();
    std::fs::create_dir(fixture.path_of("other")).unwrap();
    std::os::unix::fs::symlink(outside, fixture.path_of("other/link")).unwrap();
    let absolute = format!("about = \"{}/about.md\"", outside.display());
    for (page, said) in [
        ("about = \"../../about.md\"", "Outside of the folder"),
        ("about = \"link/about.md\"", "link is a symbolic link"),
        (&*absolute, "Outside of the folder"),
    ] {
        fixture.write(
            "other/svc.toml",
            &format!("project = \"Guest book\"\n[pages]\nbook = \"book.html\"\n{page}\n"),
        );
        let refused = fixture
            .run_for_failure(1, &["pull", "other", "--yes"])
            .await;
        assert!(refused.contains(said), "{page}: {refused}");
        assert_eq!(
            super::list_files(&fixture.path_of("other")),
            ["svc.toml"],
            "{page}"
        );
    }
    fixture.write(
        "other/svc.toml",
        "project = \"Guest book\"\n[pages]\nabout = \".git/config\"\n",
    );
    let refused = fixture
        .run_for_failure(1, &["apply", "other", "--yes"])
        .await;
    assert!(refused.contains(".git/config is hidden"), "{refused}");
    fixture.write(
        "other/svc.toml",
        "project = \"Guest book\"\nactions = \"../elsewhere\"\n",
    );
    let refused = fixture
        .run_for_failure(1, &["pull", "other", "--yes"])
        .await;
    assert!(refused.contains("Outside of the folder"), "{refused}");
    assert!(super::list_files(outside).is_empty());
}

/// Others may add a user to a workspace of theirs, with a project of the same name.
#[tokio::test]
async fn a_project_is_looked_for_in_its_workspace() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    for (workspace, code) in [("acme", Some(0)), ("stranger", Some(4))] {
        let manifest = format!("project = \"Shop\"\nworkspace = \"{workspace}\"\n");
        fixture.write("svc.toml", &manifest);
        for arguments in [&["apply", "--plan"][..], &["pull"], &["frontend", "list"]] {
            let output = fixture.run(arguments).await;
            assert_eq!(output.code, code, "{workspace} {arguments:?}: {output:?}");
        }
    }
    // A label is no name.
    fixture.write("svc.toml", "project = \"shop-acme\"\n");
    let refused = fixture.run_for_failure(4, &["frontend", "list"]).await;
    assert!(refused.contains("which svc.toml names"), "{refused}");
}

#[tokio::test]
async fn a_page_that_is_only_called_similarly_is_another() {
    let fixture = ClientFixture::new().await;
    fixture.write("week.md", "# Another\n");
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    fixture
        .run_for_stdout(&[
            "publish",
            "week.md",
            "--project",
            "Shop",
            "--name",
            "week-12",
        ])
        .await;
    fixture.write("week.md", "# Week\n");
    fixture.write(
        "svc.toml",
        "project = \"Shop\"\n[pages]\nweek = \"week.md\"\n",
    );
    fixture.run_for_stdout(&["apply", "--yes"]).await;
    assert_eq!(fixture.fetch_source("week").await, "# Week\n");
    assert_eq!(fixture.fetch_source("week-12").await, "# Another\n");
}
