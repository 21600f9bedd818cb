//! WebSocket in a room, from the upgrade to its end.

use std::sync::Arc;

use super::client::Client;
use super::hub::RoomTicket;
use super::identified::IdentifiedSockets;
use super::meter::{Meter, MeterDecision};
use super::protocol::{self, Refusal};
use super::room::Liveness;
use crate::http::websocket::{AcceptedUpgrade, Close, Incoming, Outbox, frame};
use crate::visitors::Session;

/// Serves a socket after the handshake. With `sign_in` it shows the signed-in visitor, and is closed when the session ends.
pub(super) async fn serve(
    accepted: AcceptedUpgrade,
    ticket: RoomTicket,
    id: Arc<Client>,
    sign_in: Option<(Arc<IdentifiedSockets>, Arc<Session>)>,
) {
    let limits = &ticket.hub().limits;
    let bytes = usize::try_from(limits.frame_bytes).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.outbound_queue).unwrap_or(usize::MAX);
    let Some(socket) = accepted.into_socket(bytes).await else {
        return;
    };
    let (outbox, mut running) = socket.open(queue);
    let _identified = sign_in.map(|(all, session)| all.add(session, &outbox));
    let now = ticket.hub().now().elapsed;
    let life = Arc::new(Liveness::new(now));
    match ticket.join(Arc::clone(&id), &outbox, &life) {
        Ok(()) => {
            let mut visitor = FrameHandler {
                meter: Meter::new(ticket.hub().limits.messages_per_second, now),
                ticket: &ticket,
                id: &id,
                outbox: &outbox,
                life: &life,
            };
            running.run(&mut |incoming| visitor.take(incoming)).await;
        }
        Err(close) => outbox.close(close),
    }
    ticket.leave(&id);
    running.end().await;
    tracing::debug!("closed");
}

/// Handler of the client's frames.
struct FrameHandler<'a> {
    ticket: &'a RoomTicket,
    id: &'a Arc<Client>,
    outbox: &'a Outbox,
    life: &'a Liveness,
    meter: Meter,
}

impl FrameHandler<'_> {
    fn take(&mut self, incoming: Incoming<'_>) -> Result<(), Close> {
        let hub = self.ticket.hub();
        let now = hub.now().elapsed;
        let text = match incoming {
            Incoming::Pong => {
                self.life.record_alive(now);
                return Ok(());
            }
            // Each ping costs an answer, so pings count towards the rate.
            Incoming::Ping if self.meter.count(now) == MeterDecision::Sustained => {
                return Err(Close::FLOOD);
            }
            Incoming::Ping | Incoming::Drained => return Ok(()),
            Incoming::Text(text) => text,
        };
        let refusal = match (self.meter.count(now), protocol::parse_frame(text)) {
            (MeterDecision::Sustained, _) => return Err(Close::FLOOD),
            (MeterDecision::AcceptedUpgrade, Ok(message)) => {
                hub.publish(&self.ticket.room, &message, Some(self.id));
                return Ok(());
            }
            (MeterDecision::AcceptedUpgrade, Err(refusal)) => refusal,
            (MeterDecision::Refused, judged) => {
                let id = match judged {
                    Ok(message) => message.client_message_id,
                    Err(refusal) => refusal.client_message_id,
                };
                Refusal::rate_limited(hub.limits.messages_per_second, id)
            }
        };
        hub.metrics.refused.inc();
        // A closed outbox drops the frame.
        let _ = self.outbox.push(frame::text_frame(&refusal.envelope()));
        Ok(())
    }
}
