//! Quotas of uploads: they hold in races, count for a client, and what never ends holds nothing.

use futures_util::future::join_all;
use serde_json::json;
use svc_tests::{TestServer, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::UploadFixture;

/// Bytes of the project's files, when all room is taken.
const ROOM: u64 = 3 << 20;
/// Uploads that race, and the bytes of each: three of them fit into the last megabyte.
const RACERS: usize = 64;
const EACH: usize = 300_000;

#[tokio::test]
async fn the_last_megabyte_is_given_once() {
    let server = TestServer::builder().limits(|limits| {
        limits.storage_bytes_pro = ROOM;
        limits.uploads_at_once = 1000;
        limits.upload_day_bytes = 1 << 40;
    });
    let fixture = UploadFixture::on_server(server.start().await).await;
    fixture.uploaded("add", &vec![b'x'; 2 << 20]).await;
    let contents: Vec<Vec<u8>> = (0..RACERS)
        .map(|racer| format!("{racer:064}").repeat(EACH / 64).into_bytes())
        .collect();
    let race = contents
        .iter()
        .map(|content| fixture.upload("add", content));
    let answers = join_all(race).await;
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        match answer.status {
            413 => drop(answer.problem(413, "storage_full")),
            503 => drop(answer.problem(503, "capacity_reached")),
            _ => drop(answer.problem(429, "rate_limited")),
        }
    }
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    assert!((1..=3).contains(&taken), "{taken}");
    assert!(fixture.used_bytes().await <= ROOM);
    let taken = u64::try_from(taken).unwrap();
    assert_eq!(fixture.project.count("photos").await, taken + 1);
    fixture.settle().await;
    let used = fixture.used_bytes().await;
    let each = u64::try_from(EACH / 64 * 64).unwrap();
    assert_eq!(used, (2 << 20) + taken * each);
    let check = fixture.check().await;
    assert_eq!(
        (&check["errors"], &check["leftovers"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn a_deleted_file_makes_room_at_once() {
    let server = TestServer::builder().limits(|limits| limits.storage_bytes_pro = ROOM);
    let fixture = UploadFixture::on_server(server.start().await).await;
    let large = vec![b'x'; 2 << 20];
    let first = fixture.uploaded("add", &large).await;
    fixture
        .upload("add", &large[1..])
        .await
        .problem(413, "storage_full");
    fixture
        .project
        .call_ok("remove", &json!({ "file": first["id"] }))
        .await;
    fixture.uploaded("add", &large[1..]).await;
}

#[tokio::test]
async fn a_day_has_so_many_bytes_for_a_client() {
    let server = TestServer::builder().limits(|limits| limits.upload_day_bytes = 1000);
    let fixture = UploadFixture::on_server(server.start().await).await;
    fixture.uploaded("add", &[b'x'; 600]).await;
    // What is refused takes nothing of it.
    let refused = async |bytes: usize| fixture.upload("full", &vec![b'x'; bytes]).await;
    refused(400).await.problem(403, "upload_refused");
    fixture
        .upload("add", &[b'x'; 401])
        .await
        .problem(429, "rate_limited");
    fixture.uploaded("add", &[b'x'; 400]).await;
    fixture
        .upload("add", b"x")
        .await
        .problem(429, "rate_limited");
    fixture.project.server.advance(24 * 3600 + 1);
    fixture.uploaded("add", b"x").await;
    // Of what is refused there may be as much.
    refused(900).await.problem(403, "upload_refused");
    refused(101).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn bodies_that_never_end_hold_a_turn_and_leave_nothing() {
    let server = TestServer::builder().system_clock();
    let fixture = UploadFixture::on_server(server.start().await).await;
    let address = fixture.project.server.address();
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /room/api/files/add HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server asks for the body of an upload that has its turn.
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).await.unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"begun").await.unwrap();
        slow.push(stream);
    }
    let fifth = fixture.upload("add", b"a fifth").await;
    fifth.problem(429, "rate_limited");
    // A call is answered meanwhile.
    fixture.project.call_ok("latest", &json!({})).await;
    // A body that is cut gives its turn back.
    for mut stream in slow {
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    }
    let taken = async || {
        let answer = fixture.upload("add", b"in its turn").await;
        (answer.status == 201).then_some(())
    };
    wait_until("a turn", taken).await;
    let temporary = fixture.project.server.data().join("tmp");
    let left = std::fs::read_dir(temporary).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}
