//! Operators let people into workspaces, and out: an operator's namespace has an owner by that.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Output, TestServer};

use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::{Owner, text};
use crate::svc;

async fn run_member_command(server: &TestServer, arguments: &[&str]) -> Output {
    let all = [&["workspace", "member"][..], arguments].concat();
    server.command(&svc(), &all).await
}

#[tokio::test]
async fn a_namespace_is_given_an_owner() {
    let fixture = MembersFixture::new().await;
    let server = &fixture.server;
    let machine = Owner::new(server, "acme").await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let path = format!("{WORKSPACES_PATH}/acme");
    alice.get(&fixture, &path).await.problem(403, "forbidden");
    let add = ["add", "acme", &alice.id, "--role", "owner", "--json"];
    let added = run_member_command(server, &add).await.json();
    let expected = json!({
        "user_id": alice.id, "email": "alice@example.org", "role": "owner", "created_at": added["created_at"],
    });
    assert_eq!(added, expected);
    // In effect when it is answered, over every door.
    let seen = alice.get(&fixture, &path).await.expect(200).json();
    assert_eq!(seen["role"], "owner");
    let rename = json!({ "display_name": "Acme Inc." });
    alice
        .send(&fixture, Method::PATCH, &path, rename)
        .await
        .expect(200);
    let members = format!("{path}/members");
    let body = json!({ "user_id": bob.id, "role": "viewer" });
    alice
        .send(&fixture, Method::POST, &members, body)
        .await
        .expect(201);
    machine.get(server, "").await.expect(200);
    // Whoever is in has the role that is given last; by the workspace's id, too.
    let id = text(&seen["id"]);
    let add = ["add", &id, &bob.id, "--role", "admin"];
    let output = run_member_command(server, &add).await;
    assert!(
        output.stdout.contains(&format!("{} is admin of", bob.id)),
        "{output:?}"
    );
    let listed = run_member_command(server, &["list", "acme", "--json"])
        .await
        .json();
    let roles = listed["members"].as_array().unwrap().iter();
    let mut roles: Vec<_> = roles
        .map(|one| (text(&one["user_id"]), text(&one["role"])))
        .collect();
    roles.sort();
    let mut expected = [
        (alice.id.clone(), "owner".to_owned()),
        (bob.id.clone(), "admin".to_owned()),
    ];
    expected.sort();
    assert_eq!(roles, expected);
    let output = run_member_command(server, &["remove", "acme", &bob.id]).await;
    assert!(output.success, "{output:?}");
    bob.get(&fixture, &path).await.problem(403, "forbidden");
    // The audit says who did it.
    let audit = alice.get(&fixture, &format!("{path}/audit")).await.json();
    let entries = audit["entries"].as_array().unwrap().iter();
    let by_operator = entries.filter(|entry| entry["principal"] == "operator");
    let acts: Vec<_> = by_operator
        .map(|entry| (text(&entry["action"]), entry["target"].clone()))
        .collect();
    let expected = [
        ("member.remove", &bob.id),
        ("member.add", &bob.id),
        ("member.add", &alice.id),
    ];
    let expected = expected.map(|(act, target)| (act.to_owned(), json!(target)));
    assert_eq!(acts, expected);
}

#[tokio::test]
async fn what_cannot_be_is_said_and_changes_nothing() {
    let fixture = MembersFixture::new().await;
    let server = &fixture.server;
    Owner::new(server, "acme").await;
    let alice = fixture.user("alice").await;
    let add = ["add", "acme", &alice.id, "--role", "owner"];
    assert!(run_member_command(server, &add).await.success);
    let listed = async || {
        run_member_command(server, &["list", "acme", "--json"])
            .await
            .json()
    };
    let before = listed().await;
    let id = alice.id.as_str();
    for (arguments, said) in [
        (&["add", "nowhere", id, "--role", "owner"][..], "`nowhere`"),
        (
            &["add", "acme", "usr_nobody", "--role", "owner"],
            "there is no user",
        ),
        (
            &["add", "acme", "alice@example.org", "--role", "owner"],
            "usr_",
        ),
        (&["add", "acme", id, "--role", "machine"], "machine"),
        (&["add", "acme", id], "--role"),
        (&["add", "acme", id, "--role", "viewer"], "last owner"),
        (&["remove", "acme", id], "last owner"),
        (&["remove", "acme", "usr_nobody"], "is no member"),
        (&["list", "nowhere"], "`nowhere`"),
    ] {
        let output = run_member_command(server, arguments).await;
        assert!(!output.success, "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(said), "{arguments:?}: {output:?}");
        assert_eq!(listed().await, before, "{arguments:?}");
    }
    // Without a server, too.
    let MembersFixture { server, issuer } = fixture;
    let server = server
        .restart_after_change(async |data| {
            let list = ["workspace", "member", "list", "acme"];
            let listed = svc().run(data, &list).await;
            assert!(listed.stdout.contains(id), "{listed:?}");
        })
        .await;
    let fixture = MembersFixture { server, issuer };
    let seen = fixture.user("alice").await;
    let seen = seen.get(&fixture, &format!("{WORKSPACES_PATH}/acme")).await;
    assert_ne!(seen.expect(200).json()["members"], Value::Null);
}
