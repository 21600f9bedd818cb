//! `svc init`: a folder that `svc dev` serves as it is.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, run_command};

use super::{ClientFixture, RunningCommand, list_files};

const TEMPLATES: [(&str, &[&str]); 5] = [
    ("blank", &["home"]),
    ("board", &["board"]),
    (
        "docs",
        &[
            "handbook",
            "handbook-architecture",
            "handbook-faq",
            "handbook-start",
        ],
    ),
    ("guest-book", &["book"]),
    ("survey", &["survey", "survey-results"]),
];

#[tokio::test]
async fn every_template_is_served_as_it_is() {
    let fixture = ClientFixture::new().await;
    for (template, slugs) in TEMPLATES {
        let folder = format!("my {template}");
        let init = ["init", "--template", template, &folder, "--json"];
        let init = run_command(fixture.command_without_credential(&init))
            .await
            .json();
        assert_eq!(
            (&init["template"], &init["folder"]),
            (&json!(template), &json!(folder))
        );
        for file in ["svc.toml", "README.md", ".gitignore"] {
            assert!(
                fixture.path_of(&folder).join(file).is_file(),
                "{template} {file}"
            );
        }
        assert!(
            fixture
                .read(&format!("{folder}/.gitignore"))
                .contains(".svc/\n")
        );
        let manifest = fixture.read(&format!("{folder}/svc.toml"));
        assert!(
            manifest.contains(&format!("project = \"{folder}\"")),
            "{manifest}"
        );
        let dev = ["dev", &folder, "--json"];
        let dev = RunningCommand::start(&fixture.command_without_credential(&dev));
        let said: Value = serde_json::from_str(&dev.wait_for_lines(1).await[0]).unwrap();
        let pages = said["pages"].as_array().unwrap();
        let found: Vec<_> = pages
            .iter()
            .map(|page| page["slug"].as_str().unwrap())
            .collect();
        assert_eq!(found, slugs, "{template}");
        for slug in found {
            let url = format!("{}/{slug}", said["server"].as_str().unwrap());
            let page = fixture.server.client().get(url).answer().await.expect(200);
            assert!(page.html().contains("<title>"), "{slug}");
        }
        assert!(!dev.stderr().contains("warning"), "{}", dev.stderr());
    }
}

#[tokio::test]
async fn nothing_is_asked_and_nothing_replaced() {
    let fixture = ClientFixture::new().await;
    let init = |arguments: &[&str]| {
        let arguments = [&["init"], arguments].concat();
        run_command(fixture.command_without_credential(&arguments))
    };
    let said = init(&[]).await;
    assert!(said.success, "{said:?}");
    assert!(
        said.stdout.contains("svc dev") && said.stdout.contains("svc apply"),
        "{said:?}"
    );
    let files = list_files(fixture.folder.path());
    // Any file, folder or link in the place of one is in the way, and then nothing is written.
    std::os::unix::fs::symlink("nowhere", fixture.path_of("link")).unwrap();
    for (folder, there) in [
        (".", "svc.toml"),
        ("one", "book.html"),
        ("two", "actions/sign.sql"),
    ] {
        if folder != "." {
            let path = format!("{folder}/{there}");
            std::fs::create_dir_all(fixture.path_of(&path).parent().unwrap()).unwrap();
            match folder {
                "one" => std::os::unix::fs::symlink("nowhere", fixture.path_of(&path)).unwrap(),
                _ => fixture.write(&path, "mine"),
            }
        }
        let before = list_files(&fixture.path_of(folder));
        let refused = init(&["--template", "guest-book", folder]).await;
        assert!(
            refused.code == Some(5) && refused.stderr.contains(&format!("`{there}`")),
            "{refused:?}"
        );
        assert_eq!(list_files(&fixture.path_of(folder)), before);
    }
    assert_eq!(fixture.read("two/actions/sign.sql"), "mine");
    assert!(
        files.iter().all(|file| fixture.path_of(file).exists()),
        "{files:?}"
    );
    // So does what every repository begins with.
    fixture.write("repository/README.md", "# Ours\n");
    let said = init(&["repository"]).await;
    assert!(
        said.success && said.stderr.contains("`README.md` stays"),
        "{said:?}"
    );
    assert_eq!(fixture.read("repository/README.md"), "# Ours\n");
    assert!(fixture.path_of("repository/svc.toml").is_file());
    // What other programs read too stays as it is.
    fixture.write("three/.gitignore", "target\n");
    let said = init(&["three"]).await;
    assert!(said.success && said.stderr.contains("`.svc/`"), "{said:?}");
    assert_eq!(fixture.read("three/.gitignore"), "target\n");
    let unknown = init(&["--template", "shop", "four"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("guest-book") && !fixture.path_of("four").exists());
}
