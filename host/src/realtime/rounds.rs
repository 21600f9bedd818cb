//! Rounds in which the queues of a room's members are written.
//!
//! In a quiet room a message is written at once. A write costs the same for one message as for many, and is most of the cost of a delivery.
//! So a slow round is followed by a pause in which messages are gathered; many messages end the pause early.

use std::sync::Arc;
use std::time::Duration;

use svc_base::Stopwatch;

use super::hub::Hub;
use super::room::{DeliveryTally, Room};

/// Number of members that are written before the task yields.
const MEMBERS_PER_YIELD: usize = 32;
/// Length of a pause, as a multiple of the round before it.
const PAUSE_FACTOR: u32 = 2;
/// Shorter pauses are skipped, because timers are not more precise.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Starts writing the queues of a room, if something was queued.
pub(super) fn start(hub: &Arc<Hub>, room: &Arc<Room>) {
    if room.try_start_rounds() {
        tokio::spawn(run_rounds(Arc::clone(hub), Arc::clone(room)));
    }
}

/// Runs rounds until nothing new is queued.
async fn run_rounds(hub: Arc<Hub>, room: Arc<Room>) {
    while let Some(outboxes) = hub.with_room(&room, |now, tally| room.begin_round(now, tally)) {
        let watch = Stopwatch::start();
        for chunk in outboxes.chunks(MEMBERS_PER_YIELD) {
            let mut tally = DeliveryTally::default();
            for outbox in chunk {
                let flushed = outbox.flush();
                tally.longest = tally.longest.max(flushed.waiting);
                tally.dropped += flushed.dropped as u64;
            }
            hub.metrics.add(tally);
            if chunk.len() == MEMBERS_PER_YIELD {
                tokio::task::yield_now().await;
            }
        }
        drop(outboxes);
        let pause = (watch.elapsed() * PAUSE_FACTOR).min(LONGEST_PAUSE);
        if pause >= SHORTEST_PAUSE {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = room.urgent.notified() => {}
            }
        }
    }
}
