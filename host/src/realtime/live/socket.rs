//! One page's socket, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use super::Live;
use super::backlog::{Backlog, ParsedFrame};
use super::connection::{ConnectionContext, Transport};
use super::listener::Listener;
use super::listeners::Admission;
use super::protocol::{self, Frame, Refusal};
use super::service::{DrawnTokens, LiveError, SubscribeRequest};
use crate::http::websocket::{AcceptedUpgrade, Close, Incoming};
use crate::realtime::meter::{Meter, MeterDecision};
use svc_base::ids::BackendId;

/// More frames than are on their way to a client at once.
const SPARE_OUTBOX_CAPACITY: usize = 64;
/// The least number of frames that may wait: more than a client may send at once by default.
const MIN_BACKLOG: usize = 64;

/// Serves a socket whose handshake has been answered.
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

/// Returns how many frames of a client may wait for those before them to be done.
fn backlog_capacity(live: &Live) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).unwrap_or(usize::MAX).max(MIN_BACKLOG)
}

/// Does what a client asks for, one frame after another, for as long as it is polled.
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
                    listener.refuse(Some(&id), &error.into());
                }
            }
            Err(Refusal { id, problem }) => listener.refuse(id.as_ref(), &problem),
        }
    }
}

/// The page at the other end.
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
            // Pings cost an answer each, so a flood of them is one, too.
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

    /// Returns the refusal of a frame that comes too early. Its subscription ends by that: an unsubscribe is done, too.
    fn too_fast(&self, judged: ParsedFrame) -> Refusal {
        let id = match judged {
            Ok(Frame::Subscribe { id, .. } | Frame::Unsubscribe { id }) => Some(id),
            Err(refusal) => refusal.id,
        };
        let per_second = self.live.config.limits.messages_per_second;
        Refusal {
            id,
            problem: protocol::rate_limit_problem(per_second),
        }
    }

    /// Answers a frame for which the backlog has no room: what ends a subscription is done at once, the rest refused.
    fn overflow(&self, judged: ParsedFrame) {
        let (id, problem) = match judged {
            Ok(Frame::Unsubscribe { id }) => {
                self.backlog.remove_subscribes(&id);
                self.listener.end(&id);
                return;
            }
            Ok(Frame::Subscribe { id, .. }) => {
                (Some(id), LiveError::Backlog(self.backlog.most()).into())
            }
            Err(Refusal { id, problem }) => (id, problem),
        };
        if let Some(id) = &id {
            self.backlog.remove_subscribes(id);
        }
        self.listener.refuse(id.as_ref(), &problem);
    }
}
