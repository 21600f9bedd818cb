//! Commands that fail: with `--json` each still answers one document, which says why.

use serde_json::Value;
use tempfile::TempDir;

use crate::svc;

#[tokio::test]
async fn a_command_that_fails_answers_a_document_too() {
    let data = TempDir::new().unwrap();
    let made = ["namespace", "create", "acme"];
    assert!(svc().run(data.path(), &made).await.success);
    for arguments in [
        &["namespace", "create", "acme"][..],
        &["namespace", "plan", "nobody", "pro"],
        &["key", "create", "nobody"],
        &["key", "list", "nobody"],
        &["key", "revoke", "acme", "nothing"],
        &["deployment", "disable", "nothing"],
        &["deployment", "show", "nothing"],
        &["payments", "rebuild", "nothing"],
        &["visitors", "list", "nothing"],
        &["workspace", "member", "list", "nobody"],
        &["guest", "check", "/nowhere.wasm"],
        &["guest", "install", "/nowhere.wasm"],
        &["guest", "rollback", "render"],
        &["restore", "/nowhere"],
    ] {
        let arguments = [arguments, &["--json"]].concat();
        let failed = svc().run(data.path(), &arguments).await;
        assert!(!failed.success, "{arguments:?}: {failed:?}");
        if failed.code == Some(2) {
            panic!("{arguments:?} is no command: {failed:?}");
        }
        let document: Value = serde_json::from_str(&failed.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {failed:?}"));
        let detail = document["error"]["detail"].as_str().unwrap();
        assert!(!detail.is_empty() && document["error"]["exit"] == 1);
        assert!(failed.stderr.contains(detail), "{arguments:?}: {failed:?}");
        // Without the flag nothing but the words for people.
        let arguments = &arguments[..arguments.len() - 1];
        let plain = svc().run(data.path(), arguments).await;
        assert_eq!(plain.stdout, "", "{arguments:?}");
    }
    let missing = data.path().join("missing");
    for command in ["status", "check"] {
        let failed = svc().run(&missing, &[command, "--json"]).await;
        let document: Value = serde_json::from_str(&failed.stdout).unwrap();
        assert!(document["error"]["detail"].is_string(), "{failed:?}");
    }
}
