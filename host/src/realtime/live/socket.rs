//! WebSocket of live queries, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use super::Live;
use super::backlog::{Backlog, ParsedFrame};
use super::connection::{ConnectionContext, Transport};
use super::error::LiveError;
use super::listener::Listener;
use super::listeners::Admission;
use super::protocol::{self, Frame, Refusal};
use super::service::{DrawnTokens, SubscribeRequest};
use crate::http::websocket::{AcceptedUpgrade, Close, Incoming};
use crate::realtime::frames::FrameError;
use crate::realtime::meter::{Meter, MeterDecision};
use svc_base::ids::BackendId;

/// Additional outbox capacity, above the number of frames that are in flight at once.
const SPARE_OUTBOX_CAPACITY: usize = 64;
/// Minimum capacity of the backlog: more than the default burst of a client.
const MIN_BACKLOG: usize = 64;

/// Serves a socket after the handshake.
pub(super) async fn serve(
    live: Live,
    accepted: AcceptedUpgrade,
    (backend, client): (BackendId, IpAddr),
    (place, opened): (Admission, ConnectionContext),
) {
    let limits = &live.config.limits;
    let bytes = usize::try_from(limits.frame_bytes).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.outbound_queue).unwrap_or(usize::MAX);
    let Some(socket) = accepted.into_socket(bytes).await else {
        return;
    };
    let (outbox, mut running) = socket.open(queue.saturating_add(SPARE_OUTBOX_CAPACITY));
    outbox.let_client_begin();
    let registration = live.register(backend, place, opened, Transport::Socket(outbox));
    let backlog = Backlog::new(backlog_capacity(&live));
    let mut page = FrameHandler {
        listener: &registration.listener,
        meter: Meter::new(limits.messages_per_second, live.now()),
        live: &live,
        backlog: &backlog,
    };
    let mut take = |incoming: Incoming<'_>| page.take(incoming);
    tokio::select! {
        () = running.run(&mut take) => {}
        () = handle_frames(&live, &registration.listener, client, &backlog) => {}
    }
    registration.listener.end_all();
    running.end().await;
    tracing::debug!("closed");
}

/// Returns the capacity of a client's backlog.
fn backlog_capacity(live: &Live) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).unwrap_or(usize::MAX).max(MIN_BACKLOG)
}

/// Handles the frames of a client in order, as long as it is polled.
async fn handle_frames(live: &Live, listener: &Arc<Listener>, client: IpAddr, backlog: &Backlog) {
    loop {
        match backlog.next().await {
            Ok(Frame::Unsubscribe { id }) => listener.end(&id),
            Ok(Frame::Subscribe { id, action, params }) => {
                let mut left = DrawnTokens::default();
                let request = SubscribeRequest {
                    id: Arc::clone(&id),
                    action,
                    params,
                };
                let subscribed = match live.draw_client_token(&client, &mut left) {
                    Ok(()) => live.subscribe(listener, request, &mut left).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = subscribed {
                    listener.refuse(Some(&id), &error);
                }
            }
            Err(Refusal { id, error }) => listener.refuse(id.as_ref(), &error.into()),
        }
    }
}

/// Handler of the client's frames.
struct FrameHandler<'a> {
    listener: &'a Listener,
    meter: Meter,
    live: &'a Live,
    backlog: &'a Backlog,
}

impl FrameHandler<'_> {
    fn take(&mut self, incoming: Incoming<'_>) -> Result<(), Close> {
        let now = self.live.now();
        let text = match incoming {
            Incoming::Pong => {
                self.listener.life.record_alive(now);
                return Ok(());
            }
            Incoming::Drained => {
                self.listener.drained();
                return Ok(());
            }
            // Each ping costs an answer, so pings count towards the rate.
            Incoming::Ping if self.meter.count(now) == MeterDecision::Sustained => {
                return Err(Close::FLOOD);
            }
            Incoming::Ping => return Ok(()),
            Incoming::Text(text) => text,
        };
        let judged = match (self.meter.count(now), protocol::parse_frame(text)) {
            (MeterDecision::Sustained, _) => return Err(Close::FLOOD),
            (MeterDecision::AcceptedUpgrade, judged) => judged,
            (MeterDecision::Refused, judged) => Err(self.too_fast(judged)),
        };
        if let Err(judged) = self.backlog.add(judged) {
            self.overflow(judged);
        }
        Ok(())
    }

    /// Returns the refusal of a frame above the rate. It ends the subscription of the frame, even for an unsubscribe.
    fn too_fast(&self, judged: ParsedFrame) -> Refusal {
        let id = match judged {
            Ok(Frame::Subscribe { id, .. } | Frame::Unsubscribe { id }) => Some(id),
            Err(refusal) => refusal.id,
        };
        let per_second = self.live.config.limits.messages_per_second;
        Refusal {
            id,
            error: FrameError::TooMany(per_second),
        }
    }

    /// Answers a frame for which the backlog has no room: an unsubscribe is handled at once, any other frame is refused.
    fn overflow(&self, judged: ParsedFrame) {
        let (id, error) = match judged {
            Ok(Frame::Unsubscribe { id }) => {
                self.backlog.remove_subscribes(&id);
                self.listener.end(&id);
                return;
            }
            Ok(Frame::Subscribe { id, .. }) => (Some(id), LiveError::Backlog(self.backlog.most())),
            Err(Refusal { id, error }) => (id, error.into()),
        };
        if let Some(id) = &id {
            self.backlog.remove_subscribes(id);
        }
        self.listener.refuse(id.as_ref(), &error);
    }
}
