//! WebSocket of live queries, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use super::LiveQueries;
use super::backlog::{FrameBacklog, ParsedFrame};
use super::connection::{ConnectionContext, LiveTransport};
use super::error::LiveError;
use super::listener::LiveConnection;
use super::listeners::ConnectionAdmission;
use super::opening::LiveQueryOpening;
use super::protocol::{self, LiveFrame, LiveFrameRefusal};
use super::service::{SubscribeRequest, SubscriptionRateTokens};
use crate::http::websocket::{AcceptedUpgrade, CloseReason, SocketEvent};
use crate::realtime::frames::ClientFrameError;
use crate::realtime::meter::{FrameDecision, SocketRateMeter};
use svc_base::ids::BackendId;

/// Additional outbox capacity, above the number of frames that are in flight at once.
const SPARE_OUTBOX_CAPACITY: usize = 64;
/// Minimum capacity of the backlog: more than the default burst of a client.
const MIN_BACKLOG: usize = 64;

/// Serves a socket after the handshake.
pub(super) async fn serve(
    live: LiveQueries,
    accepted: AcceptedUpgrade,
    (backend, client): (BackendId, IpAddr),
    (place, opened): (ConnectionAdmission, ConnectionContext),
) {
    let limits = &live.config.limits;
    let bytes = usize::try_from(limits.frame_bytes).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.outbound_queue).unwrap_or(usize::MAX);
    let Some(socket) = accepted.into_socket(bytes).await else {
        return;
    };
    let (outbox, mut running) = socket.open(queue.saturating_add(SPARE_OUTBOX_CAPACITY));
    outbox.allow_reading_before_write();
    let registration = live.register(backend, place, opened, LiveTransport::Socket(outbox));
    // The database may have gone to another node while the connection was opened. From now on the connection would go along.
    if live.claim(backend).await.is_err() {
        registration.listener.close(CloseReason::MOVED);
    }
    let backlog = FrameBacklog::new(backlog_capacity(&live));
    let mut page = LiveFrameHandler {
        listener: &registration.listener,
        meter: SocketRateMeter::new(limits.messages_per_second, live.now()),
        live: &live,
        backlog: &backlog,
    };
    let mut take = |incoming: SocketEvent<'_>| page.take(incoming);
    tokio::select! {
        () = running.run(&mut take) => {}
        () = handle_frames(&live, &registration.listener, client, &backlog) => {}
    }
    registration.listener.end_all();
    running.end().await;
    tracing::debug!("closed");
}

/// Returns the capacity of a client's backlog.
fn backlog_capacity(live: &LiveQueries) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).unwrap_or(usize::MAX).max(MIN_BACKLOG)
}

/// Handles the frames of a client in order, as long as it is polled.
async fn handle_frames(
    live: &LiveQueries,
    listener: &Arc<LiveConnection>,
    client: IpAddr,
    backlog: &FrameBacklog,
) {
    loop {
        match backlog.next().await {
            Ok(LiveFrame::Unsubscribe { id }) => listener.end(&id),
            Ok(LiveFrame::Subscribe { id, action, params }) => {
                let mut left = SubscriptionRateTokens::default();
                let opening = LiveQueryOpening {
                    action: action.clone(),
                    began: live.now(),
                };
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
                    listener.opened().record(opening, Err(&error));
                    listener.refuse(Some(&id), &error);
                }
            }
            Err(LiveFrameRefusal { id, error }) => listener.refuse(id.as_ref(), &error.into()),
        }
    }
}

/// Handler of the client's frames.
struct LiveFrameHandler<'a> {
    listener: &'a LiveConnection,
    meter: SocketRateMeter,
    live: &'a LiveQueries,
    backlog: &'a FrameBacklog,
}

impl LiveFrameHandler<'_> {
    fn take(&mut self, incoming: SocketEvent<'_>) -> Result<(), CloseReason> {
        let now = self.live.now();
        let text = match incoming {
            SocketEvent::Pong => {
                self.listener.life.record_alive(now);
                return Ok(());
            }
            SocketEvent::Drained => {
                self.listener.record_drained();
                return Ok(());
            }
            // Each ping costs an answer, so pings count towards the rate.
            SocketEvent::Ping if self.meter.count(now) == FrameDecision::Sustained => {
                return Err(CloseReason::FLOOD);
            }
            SocketEvent::Ping => return Ok(()),
            SocketEvent::Text(text) => text,
        };
        let judged = match (self.meter.count(now), protocol::parse_frame(text)) {
            (FrameDecision::Sustained, _) => return Err(CloseReason::FLOOD),
            (FrameDecision::Accepted, judged) => judged,
            (FrameDecision::Refused, judged) => Err(self.too_fast_refusal(judged)),
        };
        if let Err(judged) = self.backlog.add(judged) {
            self.handle_overflow(judged);
        }
        Ok(())
    }

    /// Returns the refusal of a frame above the rate. It ends the subscription of the frame, even for an unsubscribe.
    fn too_fast_refusal(&self, judged: ParsedFrame) -> LiveFrameRefusal {
        let id = match judged {
            Ok(LiveFrame::Subscribe { id, .. } | LiveFrame::Unsubscribe { id }) => Some(id),
            Err(refusal) => refusal.id,
        };
        let per_second = self.live.config.limits.messages_per_second;
        LiveFrameRefusal {
            id,
            error: ClientFrameError::TooMany(per_second),
        }
    }

    /// Answers a frame for which the backlog has no room: an unsubscribe is handled at once, any other frame is refused.
    fn handle_overflow(&self, judged: ParsedFrame) {
        let (id, error) = match judged {
            Ok(LiveFrame::Unsubscribe { id }) => {
                self.backlog.remove_subscribes(&id);
                self.listener.end(&id);
                return;
            }
            Ok(LiveFrame::Subscribe { id, .. }) => {
                (Some(id), LiveError::Backlog(self.backlog.most()))
            }
            Err(LiveFrameRefusal { id, error }) => (id, error.into()),
        };
        if let Some(id) = &id {
            self.backlog.remove_subscribes(id);
        }
        self.listener.refuse(id.as_ref(), &error);
    }
}
