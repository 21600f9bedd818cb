//! Quotas of files in races, and against clients that never finish: nothing is above a limit, and nothing is left.

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, wait_until};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{SiteFixture, collected_objects, put_as, sha256};
use crate::owner::Owner;
use crate::svc;

/// Publications that race.
const RACERS: usize = 64;
/// Bytes of the project's files, when all room is taken.
const ROOM: u64 = 3 << 20;
/// Bytes that are there before the race: all but the last megabyte.
const THERE: usize = 2 << 20;
/// Bytes of each publication that races: three of them fit.
const EACH: usize = 300_000;

/// A text of a racer's own.
fn bytes_of(racer: usize) -> String {
    format!("{racer:064}").repeat(EACH / 64)
}

/// Returns the bytes of a project's files, as rows say it, and as they are counted.
async fn stored_bytes(server: &TestServer, project: &str) -> (u64, u64) {
    let project = project.to_owned();
    let read = server.server().app().control.read(move |c| {
        let sum = "SELECT coalesce(sum(bytes), 0) FROM blobs WHERE owner_id = ?1";
        let sum: i64 = c.query_row(sum, [&project], |row| row.get(0))?;
        let counted = "SELECT coalesce(sum(bytes), 0) FROM file_owners WHERE owner_id = ?1";
        let counted: i64 = c.query_row(counted, [&project], |row| row.get(0))?;
        Ok((sum.unsigned_abs(), counted.unsigned_abs()))
    });
    read.await.unwrap()
}

/// A site with all but the last megabyte of its project's room, and a draft's base.
async fn nearly_full() -> (SiteFixture, String) {
    let server = TestServer::builder().limits(|limits| limits.storage_bytes_pro = ROOM);
    let fixture = SiteFixture::empty(server.start().await).await;
    let there = fixture.put(&vec![1; THERE]).await;
    let files = json!({ "there": { "sha256": there } });
    let body = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    (fixture, there)
}

#[tokio::test]
async fn the_last_megabyte_is_given_once_whatever_publishes() {
    let (fixture, there) = nearly_full().await;
    fixture.server.advance(100_000);
    let before = collected_objects(&fixture.server).await;
    let base = fixture.active().await;
    let SiteFixture {
        server,
        owner,
        project,
    } = &fixture;
    let race = async |racer: usize| -> Answer {
        let (text, there) = (bytes_of(racer), json!({ "sha256": there }));
        let digest = sha256(text.as_bytes());
        let file = json!({ "text": text });
        let files = json!({ "there": there, "new": file });
        let send = async |method, below: &str, body: Value| {
            let path = format!("/api/v1/projects/{project}/frontends{below}");
            owner.send_request(server, method, &path, Some(&body)).await
        };
        match racer % 5 {
            0 => send(Method::POST, "", json!({ "type": "site", "files": files })).await,
            1 => send(Method::PUT, "/site", json!({ "files": files })).await,
            2 => {
                let changes = json!({ "set": { "new": file } });
                let draft = json!({ "base_revision_id": base, "changes": changes });
                send(Method::POST, "/site/revisions", draft).await
            }
            3 => put_as(owner, server, project, (&digest, text.into_bytes())).await,
            _ => {
                let path = format!("/api/v1/projects/{project}/frontends/site/files/{racer}");
                let request = owner.request(server, Method::PUT, &path);
                request.body(text).answer().await
            }
        }
    };
    let answers = join_all((0..RACERS).map(race)).await;
    for answer in &answers {
        match answer.status {
            200 | 201 | 204 => {}
            413 => {
                let problem = answer.problem(413, "storage_full");
                assert_eq!(problem["limit_bytes"], ROOM);
                assert!(problem["used_bytes"].as_u64().unwrap() <= ROOM);
            }
            // A draft whose base was replaced meanwhile, or a change that came too late again and again.
            409 => drop(answer.problem(409, "revision_conflict")),
            other => panic!("{other}: {}", answer.text()),
        }
    }
    let (sum, counted) = stored_bytes(server, project).await;
    assert_eq!(sum, counted);
    assert!(sum <= ROOM, "{sum}");
    let done = answers.iter().filter(|it| it.status < 300).count();
    assert!((1..=3).contains(&done), "{done} of {RACERS}");
    let full = answers.iter().filter(|it| it.status == 413).count();
    assert!(full > 0, "{full}");
    // What was refused is gone once the collector has been.
    server.advance(100_000);
    let after = collected_objects(server).await;
    // A publication has two forms of a manifest beside its file; a file that waited has ended.
    assert!(after <= before + 3 * done, "{before} {after} {done}");
    let check = server.command(&svc(), &["check", "--json"]).await.json();
    assert_eq!(check["errors"], json!([]));
    assert_eq!(check["leftovers"], json!([]));
}

#[tokio::test]
async fn the_last_bytes_of_the_installation_are_given_once() {
    let server = TestServer::builder().limits(|limits| limits.storage_total_bytes = ROOM);
    let server = server.start().await;
    let mut owners = Vec::new();
    for name in ["one", "two", "three", "four"] {
        let owner = Owner::new(&server, name).await;
        let project = owner.project(&server, "House").await;
        owners.push((owner, project));
    }
    let race = async |racer: usize| {
        let (owner, project) = &owners[racer % owners.len()];
        let file = json!({ "a": { "text": bytes_of(racer) } });
        let body = json!({ "type": "site", "files": file });
        owner
            .post(&server, &format!("/{project}/frontends"), &body)
            .await
    };
    let answers = join_all((0..RACERS).map(race)).await;
    for answer in answers.iter().filter(|it| it.status != 201) {
        answer.problem(503, "capacity_reached");
    }
    let done = answers.iter().filter(|it| it.status == 201).count();
    let most = usize::try_from(ROOM).unwrap() / (EACH / 64 * 64);
    assert!((1..=most).contains(&done), "{done} of {most}");
    let mut all = 0;
    for (_, project) in &owners {
        all += stored_bytes(&server, project).await.0;
    }
    assert!(all <= ROOM, "{all}");
}

/// Head of a request that sends a file.
fn head(fixture: &SiteFixture, path: &str, length: usize) -> String {
    format!(
        "PUT /api/v1/projects/{}/{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
        fixture.project,
        fixture.server.address(),
        fixture.owner.credential
    )
}

#[tokio::test]
async fn bodies_that_never_end_hold_nothing_and_leave_nothing() {
    let (fixture, _) = nearly_full().await;
    fixture.server.advance(100_000);
    let before = collected_objects(&fixture.server).await;
    let (sum, _) = stored_bytes(&fixture.server, &fixture.project).await;
    let digest = sha256(b"never sent");
    let mut slow = Vec::new();
    for number in 0..16 {
        let path = match number % 2 {
            0 => format!("blobs/{digest}"),
            _ => format!("frontends/site/files/slow-{number}"),
        };
        let mut stream = TcpStream::connect(fixture.server.address()).await.unwrap();
        let begun = head(&fixture, &path, 1_000_000) + &"x".repeat(100_000);
        stream.write_all(begun.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    // They reserve no room: who sends all bytes gets it.
    let whole = bytes_of(0).into_bytes();
    let name = sha256(&whole);
    let sent = (name.as_str(), whole.clone());
    let sent = put_as(&fixture.owner, &fixture.server, &fixture.project, sent).await;
    sent.expect(204);
    let now = stored_bytes(&fixture.server, &fixture.project).await;
    let with_file = sum + whole.len() as u64;
    assert_eq!(now, (with_file, with_file));
    drop(slow);
    fixture.server.advance(100_000);
    let gone = async || (collected_objects(&fixture.server).await == before).then_some(());
    wait_until("all that was begun to be gone", gone).await;
    let now = stored_bytes(&fixture.server, &fixture.project).await;
    assert_eq!(now, (sum, sum), "the file that waited has ended, too");
}

#[tokio::test]
async fn files_that_no_publication_comes_for_end() {
    let server = TestServer::builder().limits(|limits| limits.staged_seconds = 100);
    let fixture = SiteFixture::empty(server.start().await).await;
    let before = collected_objects(&fixture.server).await;
    for number in 0..10 {
        fixture.put(format!("file {number}").as_bytes()).await;
    }
    // Sent again, one waits on.
    fixture.server.advance(60);
    let again = fixture.put(b"file 3").await;
    fixture.server.advance(60);
    fixture.server.server().app().files.sweep().await.unwrap();
    let (sum, counted) = stored_bytes(&fixture.server, &fixture.project).await;
    assert_eq!((sum, counted), (6, 6));
    let files = json!({ "a": { "sha256": again } });
    let body = json!({ "type": "site", "files": files, "requested_slug": "site" });
    fixture.create(&body).await.expect(201);
    fixture.server.advance(1_000);
    assert_eq!(collected_objects(&fixture.server).await, before + 3);
    assert_eq!(fixture.read("/site/a").await, "file 3");
}

#[tokio::test]
async fn files_that_fail_take_room_until_they_are_gone() {
    // Bytes that one owner gave up take a twentieth of all room at the most, and none of the owner's room.
    let server = TestServer::builder().limits(|limits| {
        (limits.storage_bytes_pro, limits.storage_total_bytes) = (5 << 20, 100 << 20);
    });
    let fixture = SiteFixture::empty(server.start().await).await;
    let other = sha256(b"other");
    let fail = async |seed: u8| {
        // Two objects are stored by the time at which the last byte arrives.
        let sent = (other.as_str(), vec![seed; (2 << 20) + 1]);
        put_as(&fixture.owner, &fixture.server, &fixture.project, sent).await
    };
    for seed in 0..2 {
        fail(seed).await.problem(400, "digest_mismatch");
    }
    fail(2).await.problem(503, "capacity_reached");
    let now = stored_bytes(&fixture.server, &fixture.project).await;
    assert_eq!(now, (0, 0));
    fixture.server.advance(1_000);
    fail(3).await.problem(400, "digest_mismatch");
    let digest = fixture.put(&[1; 1_000]).await;
    // The bytes of a file that is there are compared, and stored nowhere.
    for seed in 4..8 {
        let sent = (digest.as_str(), vec![seed; (2 << 20) + 1]);
        let sent = put_as(&fixture.owner, &fixture.server, &fixture.project, sent).await;
        sent.problem(400, "digest_mismatch");
    }
}

#[tokio::test]
async fn what_a_project_has_takes_no_more_room() {
    let (fixture, there) = nearly_full().await;
    let path = format!(
        "/api/v1/projects/{}/frontends/site/files/copy",
        fixture.project
    );
    let request = fixture.owner.request(&fixture.server, Method::PUT, &path);
    let copied = request.body(vec![1_u8; THERE]).answer().await.expect(200);
    assert_eq!(copied.json()["site"]["files"], 2);
    let (used, _) = stored_bytes(&fixture.server, &fixture.project).await;
    assert_eq!(used, THERE as u64);
    // Both together do not fit: what was there before is said.
    let half = |text: &str| json!({ "text": text.repeat(600_000) });
    let files = json!({ "there": { "sha256": there }, "a": half("a"), "b": half("b") });
    let body = json!({ "files": files });
    let full = fixture.send(Method::PUT, "", Some(&body)).await;
    let full = full.problem(413, "storage_full");
    assert_eq!(full["used_bytes"], used);
    // The same file twice is one.
    let files = json!({ "there": { "sha256": there }, "a": half("a"), "b": half("a") });
    let body = json!({ "files": files });
    fixture.send(Method::PUT, "", Some(&body)).await.expect(200);
}
