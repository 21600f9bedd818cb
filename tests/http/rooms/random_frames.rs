//! Frames thrown at a server of its own: the right end for each, and nothing left behind. Twenty thousand are among the slow tests.

use svc_tests::{RealtimeServer, TestServer};

use crate::svc;

/// Memory that an allocator may keep to itself, in kilobytes.
const SLACK: u64 = 8 * 1024;

#[tokio::test]
async fn a_thousand_broken_connections_leave_nothing() {
    let _warm = TestServer::start().await.stop().await;
    let limits = "sockets_per_backend = 100000\nrooms_per_backend = 1000\n";
    let server = RealtimeServer::start(svc(), limits, &[]).await;
    server.assert_survives_random_frames(1_000, SLACK).await;
}
