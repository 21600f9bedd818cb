//! Rounds in which the queues of a room's members are written.
//!
//! In a quiet room a message is written at once. A write costs the same for one message as for many, and is most of the cost of a delivery.
//! So a slow round is followed by a pause in which messages are gathered; many messages end the pause early.

use std::sync::Arc;
use std::time::Duration;

use svc_base::Stopwatch;

use super::hub::RoomHub;
use super::room::{DeliveryCounts, Room};

/// Number of members that are written before the task yields.
const MEMBERS_PER_YIELD: usize = 32;
/// Pause between two rounds, in which messages gather: timers are no more precise.
const ROUND_PAUSE: Duration = Duration::from_millis(1);
/// Duration of a round from which on a pause follows: shorter rounds are cheap enough to run for each message.
const LONG_ROUND: Duration = Duration::from_micros(125);

/// Starts writing the queues of a room, if something was queued.
pub(super) fn start_rounds(hub: &Arc<RoomHub>, room: &Arc<Room>) {
    if room.try_start_rounds() {
        tokio::spawn(run_rounds(Arc::clone(hub), Arc::clone(room)));
    }
}

/// Runs rounds until nothing new is queued.
async fn run_rounds(hub: Arc<RoomHub>, room: Arc<Room>) {
    while let Some(outboxes) = hub.with_room(&room, |now, tally| room.begin_round(now, tally)) {
        let watch = Stopwatch::start();
        for chunk in outboxes.chunks(MEMBERS_PER_YIELD) {
            let mut tally = DeliveryCounts::default();
            for outbox in chunk {
                let written = outbox.write_or_close_slow();
                tally.longest = tally.longest.max(written.waiting);
                tally.dropped += written.dropped as u64;
            }
            hub.metrics.add(tally);
            if chunk.len() == MEMBERS_PER_YIELD {
                tokio::task::yield_now().await;
            }
        }
        drop(outboxes);
        if watch.elapsed() >= LONG_ROUND {
            tokio::select! {
                () = tokio::time::sleep(ROUND_PAUSE) => {}
                () = room.urgent.notified() => {}
            }
        }
    }
}
