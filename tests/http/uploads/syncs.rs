//! What an upload asks of the disk: an answer means synced, and a sync is what an upload waits for.

use svc_tests::{KernelTrace, kernel_calls, wait_until};

use super::crashes::{CrashInstallation, populate, upload};
use crate::svc;

/// Kinds of calls that wait for the disk.
const SYNCS: &str = "trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync";
/// Most syncs of an upload.
const MAX_SYNCS: usize = 4;
/// Looks at a count that make a while.
const LOOKS_AT_REST: usize = 20;

#[tokio::test]
async fn an_upload_is_synced_four_times_at_most() {
    let (here, trace) = (CrashInstallation::new(None).await, KernelTrace::new(SYNCS));
    let at = here.serve_with(trace.of(svc()), None).await;
    populate(&at).await;
    let synced = || kernel_calls(&trace.read()).count();
    let mut counts = Vec::new();
    for number in 0..9_u8 {
        let before = at_rest(synced).await;
        let (status, made) = upload(&at, &[number; 100 * 1024]).await.unwrap();
        assert_eq!(status, 201, "{made}");
        counts.push(at_rest(synced).await - before);
    }
    counts.sort_unstable();
    // What the server does by its clock, as to keep counts, may fall into one of them.
    let median = counts[counts.len() / 2];
    assert!((1..=MAX_SYNCS).contains(&median), "{counts:?}");
}

/// Returns a count when it has stayed the same for a while.
async fn at_rest(count: impl Fn() -> usize) -> usize {
    let (mut last, mut looks) = (count(), 0);
    wait_until("the disk to be at rest", async || {
        let now = count();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        (looks == LOOKS_AT_REST).then_some(now)
    })
    .await
}
