//! Files that are sent ahead of a publication: durable, counted, and gone when nothing names them in time.

use http::Method;
use serde_json::json;
use svc::content::{Digest, OBJECT_BYTES};
use svc::workspaces::Plan;
use svc_tests::{ReadAnswer, TestServer, wait_until};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{collected_objects, put, put_as, sha256};
use crate::owner::{Owner, operator_key};

/// Bytes that compress badly and differ in each object.
fn large_file(bytes: usize) -> Vec<u8> {
    let numbers = (0..bytes.div_ceil(8) as u64)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    numbers.take(bytes).collect()
}

#[tokio::test]
async fn a_file_is_kept_for_a_day_and_counted_once() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Site").await;
    let before = collected_objects(&server).await;
    let large = large_file(2_500_000);
    for _ in 0..2 {
        put(&owner, &server, &project, b"small").await;
        put(&owner, &server, &project, b"").await;
        put(&owner, &server, &project, &large).await;
    }
    // Two small ones, three objects of the large one, and their list.
    assert_eq!(collected_objects(&server).await, before + 6);
    let server = server.restart().await;
    assert_eq!(collected_objects(&server).await, before + 6);
    server.advance(86_400);
    assert_eq!(collected_objects(&server).await, before);
}

#[tokio::test]
async fn files_of_another_name_or_length_leave_nothing() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Site").await;
    let before = collected_objects(&server).await;
    let other = sha256(b"other");
    for bytes in [b"bytes".to_vec(), large_file(2_000_000)] {
        let refused = put_as(&owner, &server, &project, (&other, bytes)).await;
        refused.problem(400, "digest_mismatch");
    }
    for digest in ["x", &other[1..]] {
        let refused = put_as(&owner, &server, &project, (digest, b"other".to_vec())).await;
        refused.problem(400, "invalid_request");
    }
    // A client that hangs up in the middle.
    let path = format!("/api/v1/projects/{project}/blobs/{other}");
    let head = |length: &str| {
        format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{length}\r\n\r\n",
            server.address(),
            owner.credential
        )
    };
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let broken = vec![b'b'; 3_000_000];
    let (sent, object) = (&broken[..1_500_000], Digest::of(&broken[..OBJECT_BYTES]));
    let length = format!("Content-Length: {}", broken.len());
    stream.write_all(head(&length).as_bytes()).await.unwrap();
    stream.write_all(sent).await.unwrap();
    // The clock moves only when the first object is there: it would be stored after the end of its grace.
    let app = server.server().app();
    let stored = async || {
        let objects = app.content.list().await.unwrap().0;
        objects.contains(&object).then_some(())
    };
    wait_until("the first object of the broken file", stored).await;
    drop(stream);
    // Bodies without a length.
    for length in ["Transfer-Encoding: chunked", "X-Nothing: 1"] {
        let refused = server.raw(head(length) + "5\r\nother\r\n0\r\n\r\n").await;
        refused.problem(411, "length_required");
    }
    let gone = async || (collected_objects(&server).await == before).then_some(());
    wait_until("the objects of broken files to go", gone).await;
}

#[tokio::test]
async fn a_digest_may_be_written_in_capitals() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let capitals = sha256(b"file").to_uppercase();
    let sent = put_as(&owner, &server, &project, (&capitals, b"file".to_vec())).await;
    sent.expect(204);
    let site = json!({ "type": "site", "files": { "a": { "sha256": capitals } } });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &site).await.expect(201);
}

#[tokio::test]
async fn a_file_is_its_projects_and_its_editors() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Site").await;
    let digest = sha256(b"file");
    let put = async |owner: &Owner, project: &str| {
        put_as(owner, &server, project, (&digest, b"file".to_vec())).await
    };
    let stranger = Owner::new(&server, "other").await;
    put(&stranger, &project).await.problem(403, "forbidden");
    let viewer = operator_key(&server, "acme", "viewer").await;
    put(&viewer, &project).await.problem(403, "forbidden");
    let path = format!("/api/v1/projects/{project}/blobs/{digest}");
    let anonymous = server.request(Method::PUT, &path).body("file");
    anonymous.answer().await.problem(401, "unauthorized");
    let unknown = "01a1fc20-6ee3-7da4-ae81-ade539ecfe63";
    put(&owner, unknown).await.problem(404, "not_found");
    put(&owner, &project).await.expect(204);
}

#[tokio::test]
async fn files_have_bounds_by_the_plan_and_by_the_installation() {
    let server = TestServer::builder().limits(|limits| {
        limits.file_bytes_free = 1_000;
        limits.file_bytes_pro = 2_000;
        limits.storage_bytes_free = 2_500;
        limits.storage_bytes_pro = 10_000;
        limits.storage_total_bytes = 6_000;
    });
    let server = server.start().await;
    let free = Owner::with_plan(&server, "free", Plan::Free).await;
    let project = free.project(&server, "Site").await;
    let file = |seed: u8, bytes: usize| vec![seed; bytes];
    let send = async |owner: &Owner, project: &str, file: Vec<u8>| {
        let digest = sha256(&file);
        put_as(owner, &server, project, (&digest, file)).await
    };
    send(&free, &project, file(1, 2_001))
        .await
        .problem(413, "payload_too_large");
    send(&free, &project, file(1, 1_001))
        .await
        .problem(413, "payload_too_large");
    send(&free, &project, file(1, 1_000)).await.expect(204);
    send(&free, &project, file(2, 1_000)).await.expect(204);
    let full = send(&free, &project, file(3, 501))
        .await
        .problem(413, "storage_full");
    assert_eq!(
        (&full["used_bytes"], &full["limit_bytes"]),
        (&2_000.into(), &2_500.into())
    );
    // One that is there takes no more room.
    send(&free, &project, file(2, 1_000)).await.expect(204);
    send(&free, &project, file(3, 500)).await.expect(204);
    let pro = Owner::new(&server, "pro").await;
    let other = pro.project(&server, "Site").await;
    send(&pro, &other, file(1, 2_000)).await.expect(204);
    send(&pro, &other, file(2, 1_501))
        .await
        .problem(503, "capacity_reached");
    send(&pro, &other, file(2, 1_500)).await.expect(204);
    // What another has counts for whoever sends it, too.
    send(&pro, &other, file(3, 500))
        .await
        .problem(503, "capacity_reached");
}

#[tokio::test]
async fn the_last_bytes_are_given_once() {
    let server = TestServer::builder().limits(|limits| limits.storage_bytes_pro = 10_000);
    let server = server.start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Site").await;
    let send = async |seed: u8| {
        let file = vec![seed; 3_000];
        let digest = sha256(&file);
        put_as(&owner, &server, &project, (&digest, file))
            .await
            .status
    };
    let sent = futures_util::future::join_all((0..32).map(send)).await;
    assert_eq!(
        sent.iter().filter(|status| **status == 204).count(),
        3,
        "{sent:?}"
    );
    assert!(
        sent.iter().all(|status| [204, 413].contains(status)),
        "{sent:?}"
    );
}

#[tokio::test]
async fn files_have_a_bucket_of_their_own() {
    let server = TestServer::builder().limits(|limits| {
        limits.owner_burst = 5;
        limits.blob_burst = 3;
    });
    let server = server.start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Site").await;
    for _ in 0..3 {
        put(&owner, &server, &project, b"file").await;
    }
    let sent = put_as(
        &owner,
        &server,
        &project,
        (&sha256(b"file"), b"file".to_vec()),
    )
    .await;
    sent.problem(429, "rate_limited");
    owner.get(&server, &format!("/{project}")).await.expect(200);
}
