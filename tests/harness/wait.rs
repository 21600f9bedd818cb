//! Waiting for something to happen: by looking again and again, never by sleeping and hoping.

use std::time::{Duration, Instant};

/// When waiting ends in failure. Generous, because it costs nothing while things work: the first start after a change compiles the
/// guests, ten seconds of work for a whole machine, and it may have to share.
pub const DEADLINE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until there is something to see, and answers it; `what` names it when it does not come.
pub async fn wait_until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(started.elapsed() < DEADLINE, "waited in vain for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
