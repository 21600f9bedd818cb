//! WebSocket in a room, from the upgrade to its end.

use std::sync::Arc;

use super::client::RoomClient;
use super::hub::RoomMembership;
use super::identified::SessionSockets;
use super::meter::{FrameDecision, SocketRateMeter};
use super::protocol::{self, MessageRefusal};
use super::room::ClientLiveness;
use crate::activity::PageActivity;
use crate::http::websocket::{AcceptedUpgrade, CloseReason, Outbox, SocketEvent, frame};
use crate::visitors::VisitorSession;

/// Serves a socket after the handshake. With `sign_in` it shows the signed-in visitor, and is closed when the session ends.
pub(super) async fn serve(
    accepted: AcceptedUpgrade,
    (ticket, activity): (RoomMembership, Option<Arc<PageActivity>>),
    id: Arc<RoomClient>,
    sign_in: Option<(Arc<SessionSockets>, Arc<VisitorSession>)>,
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
    let life = Arc::new(ClientLiveness::new(now));
    match ticket.join(Arc::clone(&id), &outbox, &life) {
        Ok(()) => {
            let mut visitor = RoomFrameHandler {
                meter: SocketRateMeter::new(ticket.hub().limits.messages_per_second, now),
                ticket: &ticket,
                activity: activity.as_deref(),
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
struct RoomFrameHandler<'a> {
    ticket: &'a RoomMembership,
    /// Counters of the page that the socket was opened from.
    activity: Option<&'a PageActivity>,
    id: &'a Arc<RoomClient>,
    outbox: &'a Outbox,
    life: &'a ClientLiveness,
    meter: SocketRateMeter,
}

impl RoomFrameHandler<'_> {
    fn take(&mut self, incoming: SocketEvent<'_>) -> Result<(), CloseReason> {
        let hub = self.ticket.hub();
        let time = hub.now();
        let now = time.elapsed;
        let text = match incoming {
            SocketEvent::Pong => {
                self.life.record_alive(now);
                return Ok(());
            }
            // Each ping costs an answer, so pings count towards the rate.
            SocketEvent::Ping if self.meter.count(now) == FrameDecision::Sustained => {
                return Err(CloseReason::FLOOD);
            }
            SocketEvent::Ping | SocketEvent::Drained => return Ok(()),
            SocketEvent::Text(text) => text,
        };
        let refusal = match (self.meter.count(now), protocol::parse_frame(text)) {
            (FrameDecision::Sustained, _) => return Err(CloseReason::FLOOD),
            (FrameDecision::Accepted, Ok(message)) => {
                hub.publish(&self.ticket.room, &message, Some(self.id));
                if let Some(activity) = self.activity {
                    activity.count_message(time.at);
                }
                return Ok(());
            }
            (FrameDecision::Accepted, Err(refusal)) => refusal,
            (FrameDecision::Refused, judged) => {
                let id = match judged {
                    Ok(message) => message.client_message_id,
                    Err(refusal) => refusal.client_message_id,
                };
                MessageRefusal::rate_limited(hub.limits.messages_per_second, id)
            }
        };
        hub.metrics.refused.inc();
        // A closed outbox drops the frame.
        let _ = self.outbox.push(frame::text_frame(&refusal.envelope()));
        Ok(())
    }
}
