//! WebSocket of live queries, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use super::Live;
use super::backlog::{Backlog, Judged};
use super::listener::Listener;
use super::listeners::Place;
use super::opened::{Opened, Way};
use super::protocol::{self, Frame, Refusal};
use super::service::{Left, LiveError, SubscribeRequest};
use crate::http::websocket::{Accepted, Close, Incoming};
use crate::realtime::meter::{Draw, Meter};
use svc_base::ids::BackendId;

/// Additional outbox capacity, above the number of frames that are in flight at once.
const SPARE: usize = 64;
/// Minimum capacity of the backlog: more than the default burst of a client.
const BACKLOG: usize = 64;

/// Serves a socket after the handshake.
pub(super) async fn serve(
    live: Live,
    accepted: Accepted,
    (backend, client): (BackendId, IpAddr),
    (place, opened): (Place, Opened),
) {
    let limits = &live.config.limits;
    let bytes = usize::try_from(limits.frame_bytes).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.outbound_queue).unwrap_or(usize::MAX);
    let Some(socket) = accepted.socket(bytes).await else {
        return;
    };
    let (outbox, mut running) = socket.open(queue.saturating_add(SPARE));
    outbox.listen();
    let seat = live.seat(backend, place, opened, Way::Socket(outbox));
    let backlog = Backlog::new(most_waiting(&live));
    let mut page = Page {
        listener: &seat.listener,
        meter: Meter::new(limits.messages_per_second, live.now()),
        live: &live,
        backlog: &backlog,
    };
    let mut take = |incoming: Incoming<'_>| page.take(incoming);
    tokio::select! {
        () = running.run(&mut take) => {}
        () = answer(&live, &seat.listener, client, &backlog) => {}
    }
    seat.listener.end_all();
    running.end().await;
    tracing::debug!("closed");
}

/// Returns the capacity of a client's backlog.
fn most_waiting(live: &Live) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).unwrap_or(usize::MAX).max(BACKLOG)
}

/// Handles the frames of a client in order, as long as it is polled.
async fn answer(live: &Live, listener: &Arc<Listener>, client: IpAddr, backlog: &Backlog) {
    loop {
        match backlog.next().await {
            Ok(Frame::Unsubscribe { id }) => listener.end(&id),
            Ok(Frame::Subscribe { id, action, params }) => {
                let mut left = Left::default();
                let request = SubscribeRequest {
                    id: Arc::clone(&id),
                    action,
                    params,
                };
                let subscribed = match live.draw(&client, &mut left) {
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

/// Handler of the client's frames.
struct Page<'a> {
    listener: &'a Listener,
    meter: Meter,
    live: &'a Live,
    backlog: &'a Backlog,
}

impl Page<'_> {
    fn take(&mut self, incoming: Incoming<'_>) -> Result<(), Close> {
        let now = self.live.now();
        let text = match incoming {
            Incoming::Pong => {
                self.listener.life.shown(now);
                return Ok(());
            }
            Incoming::Drained => {
                self.listener.drained();
                return Ok(());
            }
            // Each ping costs an answer, so pings count towards the rate.
            Incoming::Ping if self.meter.draw(now) == Draw::Sustained => return Err(Close::FLOOD),
            Incoming::Ping => return Ok(()),
            Incoming::Text(text) => text,
        };
        let judged = match (self.meter.draw(now), protocol::judge(text)) {
            (Draw::Sustained, _) => return Err(Close::FLOOD),
            (Draw::Taken, judged) => judged,
            (Draw::Refused, judged) => Err(self.too_fast(judged)),
        };
        if let Err(judged) = self.backlog.add(judged) {
            self.overflow(judged);
        }
        Ok(())
    }

    /// Returns the refusal of a frame above the rate. It ends the subscription of the frame, even for an unsubscribe.
    fn too_fast(&self, judged: Judged) -> Refusal {
        let id = match judged {
            Ok(Frame::Subscribe { id, .. } | Frame::Unsubscribe { id }) => Some(id),
            Err(refusal) => refusal.id,
        };
        let per_second = self.live.config.limits.messages_per_second;
        Refusal {
            id,
            problem: protocol::too_many_frames(per_second),
        }
    }

    /// Handles a frame that does not fit into the backlog: an unsubscribe takes effect at once, other frames are refused.
    fn overflow(&self, judged: Judged) {
        let (id, problem) = match judged {
            Ok(Frame::Unsubscribe { id }) => {
                self.backlog.withdraw(&id);
                self.listener.end(&id);
                return;
            }
            Ok(Frame::Subscribe { id, .. }) => {
                (Some(id), LiveError::Backlog(self.backlog.most()).into())
            }
            Err(Refusal { id, problem }) => (id, problem),
        };
        if let Some(id) = &id {
            self.backlog.withdraw(id);
        }
        self.listener.refuse(id.as_ref(), &problem);
    }
}
