//! Syncs of an upload: its answer means synced, and each of them is waited for.

use svc::content::Digest;
use svc_tests::{KernelTrace, kernel_calls, wait_until};

use super::crashes::{CrashInstallation, populate, upload};
use crate::svc;

/// Kinds of calls that wait for the disk.
const SYNCS: &str = "trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync";
/// Most syncs of an upload.
const MAX_SYNCS: usize = 4;
/// Number of files: fewer than a client may upload at once.
const FILES: usize = 8;
const FILE_BYTES: usize = 100 * 1024;
/// Equal counts in a row after which the disk is at rest.
const LOOKS_AT_REST: usize = 20;

#[tokio::test]
async fn an_upload_waits_for_four_syncs_at_most() {
    let (here, trace) = (CrashInstallation::new(None).await, KernelTrace::new(SYNCS));
    let at = here.serve_with(trace.of(svc()), None).await;
    populate(&at).await;
    let synced = || kernel_calls(&trace.read()).count();
    let mut counts = Vec::new();
    for content in files_of_one_folder() {
        let before = at_rest(synced).await;
        let (status, made) = upload(&at, &content).await.unwrap();
        assert_eq!(status, 201, "{made}");
        counts.push(synced() - before);
    }
    // The first upload makes the folder. Work by the server's clock, such as noting the file, may fall into another one.
    counts.remove(0);
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    assert!((1..=MAX_SYNCS).contains(&median), "{counts:?}");
}

/// Makes files whose objects lie in one folder: a new folder is synced, too, which an installation has behind it soon.
fn files_of_one_folder() -> Vec<Vec<u8>> {
    let file = |number: u32| {
        let mut file = vec![0; FILE_BYTES];
        file[..4].copy_from_slice(&number.to_le_bytes());
        file
    };
    let files = (0..).map(file);
    let files = files.filter(|file| Digest::of(file).as_bytes()[0] == 0x4a);
    files.take(FILES).collect()
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
