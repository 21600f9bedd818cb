//! Namespaces: their plans and their end.

use super::*;

#[tokio::test]
async fn a_plan_changes_at_once() {
    let server = TestServer::builder().system_clock().start().await;
    let made = run(&server, &["namespace", "create", "acme"]).await;
    let owner = Owner {
        credential: text(&made["credential"]),
    };
    owner.project(&server, "One").await;
    let second = async || owner.post(&server, "", &json!({ "name": "Two" })).await;
    let refused = second().await.problem(403, "plan_limit");
    let says = "The plan of this workspace allows 1 project. ";
    assert!(text(&refused["detail"]).starts_with(says), "{refused}");
    let changed = run(&server, &["namespace", "plan", "acme", "pro"]).await;
    assert_eq!(
        (&changed["slug"], &changed["plan"]),
        (&json!("acme"), &json!("pro"))
    );
    second().await.expect(201);
    // What there is stays.
    run(&server, &["namespace", "plan", "acme", "free"]).await;
    second().await.problem(403, "plan_limit");
    let projects = run(&server, &["project", "list"]).await;
    assert_eq!(projects["projects"].as_array().unwrap().len(), 2);
    for arguments in [
        ["namespace", "plan", "none", "pro"],
        ["namespace", "plan", "acme", "gold"],
    ] {
        let refused = server.command(&svc(), &arguments).await;
        assert!(!refused.success, "{arguments:?}");
    }
}

#[tokio::test]
async fn a_deleted_namespace_is_gone_with_all_that_it_had() {
    let server = TestServer::builder().system_clock().start().await;
    let fixture = ProjectFixture::on_server(server, GUESTS).await;
    let server = &fixture.server;
    let other = Owner::new(server, "other").await;
    let theirs = other.project(server, "Theirs").await;
    other.frontend(server, &theirs, "theirs").await;
    server.get("/room").answer().await.expect(200);
    let deleted = run(server, &["namespace", "delete", "acme"]).await;
    assert_eq!(
        (&deleted["slug"], &deleted["projects"]),
        (&json!("acme"), &json!(1))
    );
    assert_eq!(deleted["server_running"], true);
    // The key is refused with the next request, and its name is free.
    let asked = fixture.owner.get(server, "").await;
    asked.problem(401, "unauthorized");
    let gone = async || (server.get("/room").answer().await.status == 404).then_some(());
    wait_until("the page to be gone", gone).await;
    let again = run(server, &["namespace", "create", "acme"]).await;
    assert_ne!(again["id"], deleted["id"]);
    let removed = async || {
        let rows = server.rows();
        let workspaces = rows.iter().find(|(table, _)| table == "workspaces");
        let backends = disk::names(&server.data().join("backends"));
        (workspaces.unwrap().1 == 2 && backends.is_empty()).then_some(())
    };
    wait_until("rows and files to be removed", removed).await;
    server.get("/theirs").answer().await.expect(200);
    let found = run(server, &["check"]).await;
    assert_eq!(found["errors"], json!([]));
    let twice = server
        .command(&svc(), &["namespace", "delete", "none"])
        .await;
    assert!(
        !twice.success && twice.stderr.contains("`none`"),
        "{twice:?}"
    );
}

/// A namespace `acme` with a project that has a backend and the page `room`, in a directory that no server has.
async fn populate_directory(data: &std::path::Path) {
    let made = svc()
        .run(data, &["namespace", "create", "acme", "--json"])
        .await
        .json();
    let site = Site {
        process: svc().serve(data, &[]).await,
        credential: made["credential"].as_str().unwrap(),
    };
    let (_, project) = site.post("", json!({ "name": "House" })).await;
    let project = text(&project["id"]);
    let backend = json!({ "ddl": GUESTS });
    let made = site.post(&format!("/{project}/backend"), backend).await;
    assert_eq!(made.0, 201, "{made:?}");
    let room = json!({ "type": "markdown", "content": "x", "requested_slug": "room" });
    let made = site.post(&format!("/{project}/frontends"), room).await;
    assert_eq!(made.0, 201, "{made:?}");
    site.process.kill().await;
}

#[tokio::test]
async fn a_namespace_ends_whatever_the_point_of_death() {
    let points = fault_points().into_iter();
    let points: Vec<_> = points
        .filter(|point| fault_group(point) == "teardown")
        .collect();
    assert!(points.len() >= 4, "{points:?}");
    for point in points {
        let data = TempDir::new().unwrap();
        populate_directory(data.path()).await;
        let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
        let dying = svc().serve_to_fault(Some(&point), data.path(), &[]).await;
        let deleted = run(&["namespace", "delete", "acme"]).await;
        let told = deleted.stderr.contains("ended before it answered");
        assert!(!deleted.success && told, "{point}: {deleted:?}");
        let (status, _) = dying.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");
        let server = svc().serve(data.path(), &[]).await;
        assert_eq!(server.get("/room").await.status, 404, "{point}");
        let removed = async || {
            let status = run(&["status", "--json"]).await.json();
            let counts = &status["counts"];
            let left = ["deployments", "backends", "projects", "namespaces"];
            left.iter().all(|name| counts[name] == 0).then_some(())
        };
        wait_until("everything to be removed", removed).await;
        server.kill().await;
        let control = rusqlite::Connection::open(data.path().join("control.db")).unwrap();
        for table in ["workspaces", "keys", "backends", "operator_events"] {
            let sql = format!("SELECT count(*) FROM {table}");
            let left = || control.query_row(&sql, [], |row| row.get::<_, i64>(0));
            let server = svc().serve(data.path(), &[]).await;
            wait_until("the rows to go", async || {
                (left().unwrap() == 0).then_some(())
            })
            .await;
            server.kill().await;
        }
    }
}
