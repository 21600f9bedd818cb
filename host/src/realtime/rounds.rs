//! Rounds in which the queues of a room's members are written.
//!
//! A message in a quiet room is written at once. A write costs the same for one message as for many, and is nearly all that a delivery
//! costs: so a round of writes that took long is followed by a pause, in which messages gather. Where they become many, they end it.

use std::sync::Arc;
use std::time::Duration;

use svc_base::Stopwatch;

use super::hub::Hub;
use super::room::{DeliveryTally, Room};

/// Members that are written to before other tasks have their turn.
const MEMBERS_PER_YIELD: usize = 32;
/// Length of a pause, in times of the round before it.
const PAUSE_FACTOR: u32 = 2;
/// Shorter pauses are left out: a timer is no finer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// Longest time that messages gather.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// Has the queues of a room written, if something was sent.
pub(super) fn start(hub: &Arc<Hub>, room: &Arc<Room>) {
    if room.try_start_rounds() {
        tokio::spawn(run_rounds(Arc::clone(hub), Arc::clone(room)));
    }
}

/// Makes rounds until nothing new is sent.
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
