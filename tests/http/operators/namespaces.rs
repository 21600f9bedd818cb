//! Namespaces and their keys, made and changed by the operator.

use serde_json::{Value, json};
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tempfile::TempDir;

use super::keys;
use crate::svc;

#[tokio::test]
async fn namespaces_and_keys() {
    let server = TestServer::builder().system_clock().start().await;
    let run = async |arguments: &[&str]| server.command(&svc(), arguments).await;
    let made = run(&["namespace", "create", "acme", "--plan", "pro", "--json"])
        .await
        .json();
    assert_eq!(keys(&made), ["credential", "id", "plan", "slug"]);
    assert_eq!(
        (&made["slug"], &made["plan"]),
        (&json!("acme"), &json!("pro"))
    );
    assert_eq!(made["id"].as_str().unwrap().len(), 36);
    let free = run(&["namespace", "create", "other", "--json"])
        .await
        .json();
    assert_eq!(free["plan"], "free");
    let first = made["credential"].as_str().unwrap().to_owned();
    assert_credential_form(&first);
    let listed = run(&["namespace", "list", "--json"]).await.json();
    let slugs: Vec<_> = listed["namespaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| &n["slug"])
        .collect();
    assert_eq!(slugs, [&json!("acme"), &json!("other")]);

    let second = run(&["key", "create", "acme", "--json"]).await.json();
    assert_eq!(keys(&second), ["credential", "key_id"]);
    let key_id = second["key_id"].as_str().unwrap().to_owned();
    let second = second["credential"].as_str().unwrap().to_owned();
    assert_credential_form(&second);
    assert_eq!(second.split('_').nth(1), Some(key_id.as_str()));

    let with = async |credential: &str| {
        let request = server.json("/api/v1/deploy", &json!({ "content": "x" }));
        request.bearer_auth(credential).answer().await.status
    };
    assert_eq!((with(&first).await, with(&second).await), (201, 201));
    let list = async || run(&["key", "list", "acme", "--json"]).await.json();
    let used = async || {
        let list = list().await;
        let keys = list["keys"].as_array().unwrap().clone();
        let used = keys.iter().all(|key| key["last_used_at"].is_string());
        used.then_some(keys)
    };
    let used = wait_until("both keys to be marked as used", used).await;
    assert_eq!(used.len(), 2);
    for key in &used {
        assert_eq!(
            keys(key),
            [
                "created_at",
                "expires_at",
                "key_id",
                "last_used_at",
                "revoked_at",
                "role"
            ]
        );
        assert_eq!(
            (&key["role"], &key["expires_at"]),
            (&json!("editor"), &Value::Null)
        );
        assert_eq!(key["revoked_at"], Value::Null);
        let made = key["created_at"].as_str().unwrap();
        assert!(made.len() == 24 && made.ends_with('Z'), "{made}");
    }
    let revoked = run(&["key", "revoke", "acme", &key_id, "--json"]).await;
    assert_eq!(revoked.json()["key_id"], json!(key_id));
    assert_eq!((with(&first).await, with(&second).await), (201, 401));
    let list = list().await;
    let states: Vec<_> = list["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| k["revoked_at"].is_string())
        .collect();
    assert_eq!(states.iter().filter(|revoked| **revoked).count(), 1);

    for (arguments, says) in [
        (&["namespace", "create", "acme"][..], "acme"),
        (&["namespace", "create", "No Name"], "name"),
        (&["namespace", "create", "x", "--plan", "gold"], "gold"),
        (&["key", "create", "nobody"], "nobody"),
        (&["key", "list", "nobody"], "nobody"),
        (&["key", "revoke", "acme", "zzzzzzzz"], "zzzzzzzz"),
        (&["key", "revoke", "other", &key_id], &key_id),
        (&["key", "list", "acme", "--jsn"], "--jsn"),
        (&["nothing"], "nothing"),
    ] {
        let output = run(arguments).await;
        assert!(!output.success, "{arguments:?}");
        assert!(
            output.stderr.contains(says),
            "{arguments:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
    // A credential is shown once and stored nowhere.
    for credential in [first, second] {
        let secret = credential.split('_').nth(2).unwrap();
        let held = svc_tests::disk::holding(server.data(), secret);
        assert!(held.is_empty(), "{held:?}");
    }
}

/// `svc_<8>_<32 bytes in base 62>_<6>`.
#[track_caller]
pub(super) fn assert_credential_form(credential: &str) {
    let parts: Vec<_> = credential.split('_').collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    assert_eq!(lengths, [3, 8, 43, 6], "{credential}");
    assert_eq!(parts[0], "svc");
    assert!(
        parts[1..]
            .concat()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric())
    );
}

#[tokio::test]
async fn a_namespace_can_be_made_before_the_first_start() {
    let data = TempDir::new().unwrap();
    let data = data.path().join("new");
    let made = svc()
        .run(&data, &["namespace", "create", "early", "--json"])
        .await
        .json();
    let server = svc().serve(&data, &[]).await;
    let url = server.url("/api/v1/deploy");
    let request = server.client().post(url).json(&json!({ "content": "x" }));
    let request = request.bearer_auth(made["credential"].as_str().unwrap());
    request.answer().await.expect(201);
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&data).unwrap());
    assert_eq!(mode & 0o777, 0o700);
}
