//! One visitor's socket, from the upgrade to its end.

use std::sync::Arc;

use super::client::Client;
use super::hub::RoomTicket;
use super::identified::IdentifiedSockets;
use super::meter::{Meter, MeterDecision};
use super::protocol::{self, Refusal};
use super::room::Liveness;
use crate::http::websocket::{AcceptedUpgrade, Close, Incoming, Outbox, frame};
use crate::visitors::Session;

/// Serves a socket whose handshake has been answered. With `sign_in` it shows who is signed in, for as long as that lasts.
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

/// The visitor at the other end.
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
            // Pings cost an answer each, so a flood of them is one, too.
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
        // One that is closed is told nothing more.
        let _ = self.outbox.push(frame::text_frame(&refusal.envelope()));
        Ok(())
    }
}
