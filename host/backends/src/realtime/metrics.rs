//! Metrics of rooms.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::room::DeliveryCounts;

#[derive(Debug, Default)]
pub(super) struct RoomMetrics {
    /// Number of sockets that joined.
    pub(super) opened: Counter,
    /// Number of messages that clients and owners sent.
    pub(super) messages: Counter,
    /// Number of refused frames.
    pub(super) refused: Counter,
    deliveries: Counter,
    drops: Counter,
    longest: Gauge,
    sockets: Gauge,
    rooms: Gauge,
}

impl RoomMetrics {
    /// Adds the deliveries and drops of an operation.
    pub(super) fn add(&self, tally: DeliveryCounts) {
        self.deliveries.inc_by(tally.delivered);
        self.drops.inc_by(tally.dropped);
        let longest = i64::try_from(tally.longest).unwrap_or(i64::MAX);
        self.longest
            .inner()
            .fetch_max(longest, std::sync::atomic::Ordering::Relaxed);
    }

    /// Sets the gauges.
    pub(super) fn set_gauges(&self, sockets: u64, rooms: u64) {
        self.sockets.set(i64::try_from(sockets).unwrap_or(i64::MAX));
        self.rooms.set(i64::try_from(rooms).unwrap_or(i64::MAX));
    }

    /// Registers the metrics.
    pub(super) fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry.register("svc_room_sockets", "WebSockets open", self.sockets.clone());
        registry.register("svc_rooms", "Rooms that somebody is in", self.rooms.clone());
        registry.register(
            "svc_room_joins",
            "Sockets let into a room",
            self.opened.clone(),
        );
        registry.register(
            "svc_room_messages",
            "Messages relayed",
            self.messages.clone(),
        );
        registry.register(
            "svc_room_refused",
            "Frames refused by a rule",
            self.refused.clone(),
        );
        registry.register(
            "svc_room_deliveries",
            "Messages put into a member's queue",
            self.deliveries.clone(),
        );
        registry.register(
            "svc_room_drops",
            "Messages thrown away with a full queue",
            self.drops.clone(),
        );
        registry.register(
            "svc_room_queue_longest",
            "The longest that a member's queue has been",
            self.longest.clone(),
        );
    }
}
