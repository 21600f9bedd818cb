//! One page's socket, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use super::Live;
use super::backlog::{Backlog, Judged};
use super::listener::Listener;
use super::listeners::Place;
use super::opened::{Opened, Way};
use super::protocol::{self, Frame, Refusal};
use super::service::{Left, LiveError, SubscribeRequest};
use crate::http::websocket::{AcceptedUpgrade, Close, Incoming};
use crate::realtime::meter::{Draw, Meter};
use svc_base::ids::BackendId;

/// More frames than are on their way to a client at once.
const SPARE: usize = 64;
/// The least number of frames that may wait: more than a client may send at once by default.
const BACKLOG: usize = 64;

/// Serves a socket whose handshake has been answered.
pub(super) async fn serve(
    live: Live,
    accepted: AcceptedUpgrade,
    (backend, client): (BackendId, IpAddr),
    (place, opened): (Place, Opened),
) {
    let limits = &live.config.limits;
    let bytes = usize::try_from(limits.frame_bytes).unwrap_or(usize::MAX);
    let queue = usize::try_from(limits.outbound_queue).unwrap_or(usize::MAX);
    let Some(socket) = accepted.into_socket(bytes).await else {
        return;
    };
    let (outbox, mut running) = socket.open(queue.saturating_add(SPARE));
    outbox.let_client_begin();
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

/// Returns how many frames of a client may wait for those before them to be done.
fn most_waiting(live: &Live) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).unwrap_or(usize::MAX).max(BACKLOG)
}

/// Does what a client asks for, one frame after another, for as long as it is polled.
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

/// The page at the other end.
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
            // Pings cost an answer each, so a flood of them is one, too.
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

    /// Returns the refusal of a frame that comes too early. Its subscription ends by that: an unsubscribe is done, too.
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

    /// Answers a frame for which the backlog has no room: what ends a subscription is done at once, the rest refused.
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
