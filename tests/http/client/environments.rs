//! Environments of a folder, and the servers that it is for.

use std::process::Command;

use svc_tests::run_command;

use super::{ClientFixture, run_with_input};

/// Logs in to a server under a profile.
async fn log_in(fixture: &ClientFixture, url: &str, profile: &str, credential: &str) {
    let command = fixture.command_without_credential(&["login", url, "--profile", profile]);
    let output = run_with_input(command, credential).await;
    assert!(output.success, "{output:?}");
}

#[tokio::test]
async fn an_environment_is_chosen_by_its_name() {
    let (here, there) = (ClientFixture::new().await, ClientFixture::new().await);
    let manifest = format!(
        "project = \"Shop\"\nserver = \"{}\"\nhome = \"shop\"\n[pages]\nshop = \"shop.md\"\nsoon = \"soon.md\"\n\
         [env.prod]\nserver = \"{}\"\nproject = \"Web shop\"\nhome = \"soon\"\nprofile = \"prod\"\n",
        here.url(),
        there.url()
    );
    here.write("svc.toml", &manifest);
    here.write("shop.md", "# Shop\n");
    here.write("soon.md", "# Soon\n");
    log_in(&here, &there.url(), "prod", &there.credential).await;
    log_in(&here, &here.url(), "home", &here.credential).await;
    let run = async |arguments: &[&str]| {
        let output = run_command(here.command_without_credential(arguments)).await;
        assert!(output.success, "{arguments:?}: {output:?}");
        output.stdout
    };
    run(&["apply", "--yes"]).await;
    run(&["apply", "--yes", "--env", "prod"]).await;
    for (fixture, project, home) in [(&here, "Shop", "shop"), (&there, "Web shop", "soon")] {
        let shown = fixture.json(&["project", "show", project]).await;
        assert_eq!(shown["home"], home);
        assert_eq!(fixture.fetch_source("shop").await, "# Shop\n");
    }
    // Each place has its own meetings, and every command that finds its project by the folder knows the environment.
    here.write("shop.md", "# Shop\n\nOpen.\n");
    run(&["apply", "--yes"]).await;
    assert_eq!(there.fetch_source("shop").await, "# Shop\n");
    run(&["push", "shop.md", "--env", "prod"]).await;
    assert_eq!(there.fetch_source("shop").await, "# Shop\n\nOpen.\n");
    let mut by_variable = here.command_without_credential(&["frontend", "delete", "soon", "--yes"]);
    by_variable.env("SVC_ENV", "prod");
    let output = run_command(by_variable).await;
    assert!(output.success, "{output:?}");
    there.server.get("/soon").await.expect(404);
    here.server.get("/soon").await.expect(200);
    let refused = run_command(here.command_without_credential(&["apply", "--env", "stage"])).await;
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for said in ["`stage`", "`prod`"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let both = ["frontend", "list", "--env", "prod", "--project", "Shop"];
    let refused = run_command(here.command_without_credential(&both)).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
}

#[tokio::test]
async fn a_folder_is_applied_to_no_other_server() {
    let (here, there) = (ClientFixture::new().await, ClientFixture::new().await);
    here.write(
        "svc.toml",
        &format!(
            "project = \"Shop\"\nserver = \"{}\"\n[pages]\nshop = \"shop.md\"\n",
            there.url()
        ),
    );
    here.write("shop.md", "# Shop\n");
    here.run_for_stdout(&["project", "create", "Shop"]).await;
    let is_refused = async |command: Command| {
        let output = run_command(command).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        for url in [here.url(), there.url()] {
            assert!(output.stderr.contains(&url), "{url}: {output:?}");
        }
    };
    let commands = [
        &["apply", "--yes"][..],
        &["apply", "--plan"],
        &["pull", "--yes"],
        &["frontend", "list"],
    ];
    for arguments in commands {
        is_refused(here.command(arguments)).await;
    }
    log_in(&here, &here.url(), "home", &here.credential).await;
    for arguments in commands {
        is_refused(here.command_without_credential(arguments)).await;
    }
    let named = ["apply", "--yes", "--server", &here.url()];
    is_refused(here.command_without_credential(&named)).await;
    assert!(
        here.json(&["frontend", "list", "--project", "Shop"]).await["frontends"]
            == serde_json::json!([])
    );
    // What is named on the command line has nothing to do with the folder.
    here.run_for_stdout(&["frontend", "list", "--project", "Shop"])
        .await;
}
