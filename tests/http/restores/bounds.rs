//! Bounds of the history, and restores beside visitors and crashes.

use super::*;

#[tokio::test]
async fn seven_days_are_kept_and_no_more() {
    let fixture = with_guests(TestServer::start().await).await;
    fixture.moments().await;
    fixture.server.advance(6 * 24 * 3600);
    fixture.add_guest("Mary").await;
    assert_eq!(fixture.moments().await.len(), 5);
    fixture.restore_ok(&time_at(0.0)).await;
    fixture.server.advance(2 * 24 * 3600);
    fixture.expire_history().await;
    let moments = fixture.moments().await;
    assert_eq!(
        moments.len(),
        3,
        "what was there then, Mary, and the restore: {moments:?}"
    );
    assert_eq!(moments[2], time_at(3.0), "it was so until Mary came");
    fixture
        .restore(&time_at(2.0))
        .await
        .problem(404, "not_found");
    fixture.server.advance(30 * 24 * 3600);
    fixture.expire_history().await;
    assert_eq!(fixture.moments().await.len(), 1);
    assert!(
        fixture.guest_names().await.is_empty(),
        "what is there is never too old"
    );
}

#[tokio::test]
async fn nothing_is_kept_where_none_is_wanted_or_there_is_no_room() {
    let off = TestServer::builder().limits(|limits| limits.history_bytes = 0);
    let full = TestServer::builder().limits(|limits| limits.history_bytes = 1000);
    for builder in [off, full] {
        let fixture = with_guests(builder.start().await).await;
        let history = fixture.history("").await.expect(200).json();
        assert_eq!(
            history,
            json!({ "oldest": null, "newest": null, "bytes": 0, "moments": [], "next_before": null })
        );
        fixture
            .restore(&time_at(1.0))
            .await
            .problem(404, "not_found");
        assert_eq!(fixture.guest_names().await.len(), 3);
    }
    // Switched off, what there was goes; switched on, it begins anew.
    let mut fixture = with_guests(TestServer::start().await).await;
    fixture.server = fixture
        .server
        .restart_with(|s| s.limits.history_bytes = 0)
        .await;
    fixture.add_guest("Mary").await;
    let id = text(&fixture.detail().await["id"]);
    let files = disk::names(&fixture.server.data().join("backends").join(&id));
    assert!(
        !files.iter().any(|name| name.ends_with(".history")),
        "{files:?}"
    );
    fixture.server = fixture
        .server
        .restart_with(|s| s.limits.history_bytes = 1 << 26)
        .await;
    assert_eq!(fixture.moments().await, [time_at(4.0)]);
}

/// Visitors who read beside a restore see what was before or what is after, and what they write is in neither half.
#[tokio::test]
async fn visitors_beside_a_restore_see_one_state_or_the_other() {
    let fixture = ProjectFixture::new("CREATE TABLE pairs (n INTEGER, half INTEGER)").await;
    let add = "INSERT INTO pairs VALUES (:n, 1), (:n, 2)";
    let look = "SELECT count(*) AS n, sum(half = 1) AS first FROM pairs";
    fixture.define(&[("add", add), ("look", look)]).await;
    fixture.call_ok("add", &json!({ "n": 0 })).await;
    let mut visitors = tokio::task::JoinSet::new();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    for visitor in 0..4 {
        let add = json!({ "action": "add", "params": { "n": visitor } });
        let add = fixture.server.json("/room/api/op", &add);
        let look = fixture
            .server
            .json("/room/api/op", &json!({ "action": "look" }));
        let stopped = stopped.clone();
        visitors.spawn(async move {
            let mut turns = 0;
            while !*stopped.borrow() {
                add.try_clone().unwrap().answer().await.expect(200);
                let seen = look.try_clone().unwrap().answer().await.expect(200).json();
                let row = &seen["rows"][0];
                let whole = row["first"].as_u64().map(|first| first * 2);
                assert_eq!(row["n"].as_u64(), whole, "{row}");
                turns += 1;
            }
            turns
        });
    }
    for _ in 0..10 {
        fixture.server.advance(1);
        let moments = fixture.moments().await;
        let restored = fixture.restore_ok(&moments[moments.len() / 2]).await;
        fixture.restore_ok(&text(&restored["previous"])).await;
    }
    stop.send(true).unwrap();
    let turns = visitors.join_all().await;
    assert!(turns.iter().all(|turns| *turns > 0), "{turns:?}");
    let detail = fixture.detail().await;
    let ledger = detail["migrations"].as_array().unwrap();
    let versions: Vec<_> = ledger
        .iter()
        .map(|e| e["version"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, (1..=21).collect::<Vec<_>>());
    assert_eq!(detail["warnings"], json!([]));
}

/// A crash takes the times of the last minute's commits, and none of their rows.
#[tokio::test]
async fn history_outlives_a_kill() {
    let data = tempfile::TempDir::new().unwrap();
    let create = ["namespace", "create", "acme", "--json"];
    let made = svc().run(data.path(), &create).await.json();
    let credential = text(&made["credential"]);
    let mut site = crate::crashes::Site {
        process: svc().serve(data.path(), &[]).await,
        credential: &credential,
    };
    let project = text(&site.post("", json!({ "name": "House" })).await.1["id"]);
    let backend = format!("/{project}/backend");
    let ddl = json!({ "ddl": "CREATE TABLE t (a)" });
    assert_eq!(site.post(&backend, ddl).await.0, 201);
    let rows = async |site: &crate::crashes::Site<'_>| {
        let (status, detail) = site.get(&backend).await;
        assert_eq!((status, &detail["warnings"]), (200, &json!([])), "{detail}");
        named(&detail["inventory"]["tables"], "t")["rows"].clone()
    };
    let seed = async |site: &crate::crashes::Site<'_>, n: u64| {
        let sql = json!({ "ddl": format!("INSERT INTO t VALUES ({n})") });
        let answer = site.send_request(Method::PATCH, &backend, Some(sql)).await;
        assert_eq!(answer.expect("it answers").0, 200);
    };
    let history = format!("{backend}/history");
    seed(&site, 1).await;
    // Whoever looks has what there is taken.
    let known = site.get(&history).await.1;
    assert_eq!(known["moments"].as_array().unwrap().len(), 2, "{known}");
    seed(&site, 2).await;
    seed(&site, 3).await;
    site.process.kill().await;

    site.process = svc().serve(data.path(), &[]).await;
    assert_eq!(rows(&site).await, 3);
    let after = site.get(&history).await.1;
    let moments = after["moments"].as_array().unwrap();
    assert_eq!(moments[1..], known["moments"].as_array().unwrap()[..]);
    let restore = format!("{backend}/restore");
    for (moment, expected) in [(&moments[1], 1), (&moments[2], 0), (&moments[0], 3)] {
        let (status, restored) = site.post(&restore, moment.clone()).await;
        assert_eq!(
            (status, &restored["restored_to"]),
            (200, &moment["at"]),
            "{restored}"
        );
        assert_eq!(rows(&site).await, expected);
    }
    let sound = async || {
        let found = svc().run(data.path(), &["check", "--json"]).await.json();
        assert_eq!(found["errors"], json!([]));
        (found["leftovers"] == json!([])).then_some(())
    };
    wait_until("nothing to be left over", sound).await;
    site.process.kill().await;
}
