//! Operators let people into workspaces, and out: an operator's namespace has an owner by that.

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Output, TestServer};

use super::{MembersFixture, WORKSPACES_PATH};
use crate::owner::{Owner, operator_key, text};
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
    // A member has the role that was given last; the command also takes the workspace's id.
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

#[tokio::test]
async fn a_key_has_the_role_and_the_end_that_the_operator_gives_it() {
    let fixture = MembersFixture::new().await;
    let server = &fixture.server;
    Owner::new(server, "acme").await;
    let create = async |arguments: &[&str]| {
        let all = [&["key", "create", "acme", "--json"][..], arguments].concat();
        server.command(&svc(), &all).await
    };
    let hour = ["--role", "owner", "--expires-in", "3600"];
    let made = create(&hour).await.json();
    let owner = Owner::with_credential(&text(&made["credential"]));
    for (role, seen) in [
        ("viewer", "viewer"),
        ("editor", "machine"),
        ("admin", "admin"),
        ("owner", "owner"),
    ] {
        let key = operator_key(server, "acme", role).await;
        let me = key.send_request(server, Method::GET, "/api/v1/me", None);
        let me = me.await.expect(200).json();
        assert_eq!((&me["kind"], me.get("user_id")), (&json!("machine"), None));
        assert_eq!(me["memberships"][0]["role"], seen);
        let workspaces = key.send_request(server, Method::GET, WORKSPACES_PATH, None);
        let workspaces = workspaces.await.expect(200).json();
        assert_eq!(workspaces["workspaces"][0]["role"], seen);
    }
    let list = ["key", "list", "acme", "--json"];
    let listed = server.command(&svc(), &list).await.json();
    let listed = listed["keys"].as_array().unwrap().iter();
    let mut seen: Vec<_> = listed
        .map(|key| (text(&key["role"]), key["expires_at"].clone()))
        .collect();
    seen.sort_by_key(|(role, end)| (role.clone(), end.to_string()));
    let hour_later = json!("2026-11-20T13:00:00.000Z");
    let expected = [
        ("admin", Value::Null),
        ("editor", Value::Null),
        ("editor", Value::Null),
        ("owner", hour_later.clone()),
        ("owner", Value::Null),
        ("viewer", Value::Null),
    ];
    assert_eq!(seen, expected.map(|(role, end)| (role.to_owned(), end)));
    let printed = server
        .command(&svc(), &["key", "list", "acme"])
        .await
        .stdout;
    for line in ["\tviewer\t", "\tfor good\t", "\tends 2026-11-20T13:00"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    // As the API lists them.
    let keys = format!("{WORKSPACES_PATH}/acme/keys");
    let listed = owner.send_request(server, Method::GET, &keys, None).await;
    let listed = listed.expect(200).json();
    let of_owners = listed["keys"].as_array().unwrap().iter();
    let of_owners = of_owners.filter(|key| key["role"] == "owner");
    let mut ends: Vec<_> = of_owners.map(|key| key["expires_at"].clone()).collect();
    // Both were made at the same moment.
    ends.sort_by_key(Value::to_string);
    assert_eq!(ends, [hour_later, Value::Null]);
    server.advance(3600);
    let over = owner.send_request(server, Method::GET, "/api/v1/me", None);
    over.await.problem(401, "unauthorized");
    let printed = server
        .command(&svc(), &["key", "list", "acme"])
        .await
        .stdout;
    assert!(printed.contains("\tended 2026-11-20T13:00"), "{printed}");
    for refused in [
        ["--role", "machine"],
        ["--role", "Owner"],
        ["--expires-in", "0"],
        ["--expires-in", "31536001"],
        ["--expires-in", "1.5"],
    ] {
        let output = create(&refused).await;
        assert!(!output.success, "{refused:?}: {output:?}");
        assert!(output.stderr.contains(refused[0]), "{output:?}");
    }
}

#[tokio::test]
async fn an_owners_key_does_what_an_owner_may_and_is_none() {
    let fixture = MembersFixture::new().await;
    let server = &fixture.server;
    Owner::new(server, "acme").await;
    let admin = operator_key(server, "acme", "admin").await;
    let owner = operator_key(server, "acme", "owner").await;
    let (alice, bob) = (fixture.user("alice").await, fixture.user("bob").await);
    let path = format!("{WORKSPACES_PATH}/acme");
    let members = format!("{path}/members");
    let keys = format!("{path}/keys");
    let send = async |who: &Owner, method: Method, path: &str, body: Value| {
        let body = (!body.is_null()).then_some(body);
        who.send_request(server, method, path, body.as_ref()).await
    };
    // It makes no workspace, whatever its role.
    let new = json!({ "display_name": "Other" });
    for key in [&admin, &owner] {
        let made = send(key, Method::POST, WORKSPACES_PATH, new.clone()).await;
        let refused = made.problem(403, "forbidden");
        assert!(text(&refused["detail"]).contains("user"), "{refused}");
    }
    // An admin's key gives no role above its own.
    let as_owner = json!({ "user_id": alice.id, "role": "owner" });
    let given = send(&admin, Method::POST, &members, as_owner.clone()).await;
    given.problem(403, "forbidden");
    let given = send(&owner, Method::POST, &members, as_owner).await;
    given.expect(201);
    let as_admin = json!({ "user_id": bob.id, "role": "admin" });
    let given = send(&admin, Method::POST, &members, as_admin).await;
    given.expect(201);
    // The only owner stays: the key is none.
    let last = format!("{members}/{}", alice.id);
    for (method, body) in [
        (Method::DELETE, Value::Null),
        (Method::PATCH, json!({ "role": "editor" })),
    ] {
        let answer = send(&owner, method.clone(), &last, body.clone()).await;
        answer.problem(409, "last_owner");
        let answer = send(&admin, method, &last, body).await;
        answer.problem(403, "forbidden");
    }
    let detail = send(&admin, Method::GET, &path, Value::Null).await;
    let detail = detail.expect(200).json();
    assert_eq!(
        detail["members"].as_array().unwrap().len(),
        2,
        "no key is a member"
    );
    // Keys that they make are editors' or viewers', and an admin ends no owner's.
    for key in [&admin, &owner] {
        for role in ["admin", "owner"] {
            let made = send(key, Method::POST, &keys, json!({ "role": role })).await;
            made.problem(400, "invalid_request");
        }
        let made = send(key, Method::POST, &keys, json!({})).await;
        made.expect(201);
    }
    let id = |key: &Owner| key.credential.split('_').nth(1).unwrap().to_owned();
    let of_owner = format!("{keys}/{}", id(&owner));
    for somebody in [&admin, &bob.owner] {
        let ended = send(somebody, Method::DELETE, &of_owner, Value::Null).await;
        ended.problem(403, "forbidden");
    }
    let rename = json!({ "display_name": "Acme Inc." });
    let renamed = send(&admin, Method::PATCH, &path, rename).await;
    assert_eq!(renamed.expect(200).json()["role"], "admin");
    let plan = json!({ "plan": "free" });
    let changed = send(&admin, Method::PATCH, &path, plan.clone()).await;
    changed.problem(403, "forbidden");
    let changed = send(&owner, Method::PATCH, &path, plan).await;
    assert_eq!(changed.expect(200).json()["plan"], "free");
    // Who did it stands in the audit by the id of the key.
    let audit = send(&admin, Method::GET, &format!("{path}/audit"), Value::Null).await;
    let audit = audit.expect(200).json();
    let newest = &audit["entries"][0];
    assert_eq!(newest["action"], "workspace.update");
    assert_eq!(newest["principal"], json!(id(&owner)));
    let key = format!("{keys}/{}", id(&admin));
    let ended = send(&owner, Method::DELETE, &key, Value::Null).await;
    ended.expect(204);
    let gone = send(&admin, Method::GET, &path, Value::Null).await;
    gone.problem(401, "unauthorized");
    let deleted = send(&owner, Method::DELETE, &path, Value::Null).await;
    deleted.expect(204);
    let gone = send(&owner, Method::GET, &path, Value::Null).await;
    gone.problem(401, "unauthorized");
}
