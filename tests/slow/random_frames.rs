//! Frames thrown at a server over twenty thousand connections: the right end for each, and nothing left behind.

use svc_tests::RealtimeServer;

use crate::svc;

/// Memory that an allocator may keep to itself, in kilobytes; a leak of half a kilobyte a connection would be more.
const SLACK: u64 = 8 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_broken_connections_leave_nothing() {
    let limits = "sockets_per_backend = 100000\nrooms_per_backend = 1000\n";
    let server = RealtimeServer::start(svc(), limits, &[]).await;
    server.assert_survives_random_frames(20_000, SLACK).await;
}
