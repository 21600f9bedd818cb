//! One page's socket, from the upgrade to its end.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc};

use super::Live;
use super::listener::Listener;
use super::listeners::Place;
use super::opened::{Opened, Way};
use super::protocol::{self, Frame, Refusal};
use super::service::{Left, Wanted};
use crate::http::websocket::{Accepted, Close, Incoming};
use crate::realtime::meter::{Draw, Meter};
use svc_base::ids::BackendId;

/// More frames than are on their way to a client at once.
const SPARE: usize = 64;
/// The least number of frames that may wait: more than a client may send at once by default.
const BACKLOG: usize = 64;

/// Requests of a client, in their order.
type Asked = Result<Frame, Refusal>;

/// Serves a socket whose handshake has been answered.
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
    let (asks, asked) = mpsc::channel(backlog(&live));
    let mut page = Page {
        listener: &seat.listener,
        meter: Meter::new(limits.messages_per_second, live.now()),
        live: &live,
        asks,
    };
    let mut take = |incoming: Incoming<'_>| page.take(incoming);
    tokio::select! {
        () = running.run(&mut take) => {}
        () = answer(&live, &seat.listener, client, asked) => {}
    }
    seat.listener.end_all();
    running.end().await;
    tracing::debug!("closed");
}

/// Returns how many frames of a client may wait for those before them to be done.
fn backlog(live: &Live) -> usize {
    let most = live.config.limits.live_per_socket.saturating_mul(2);
    usize::try_from(most).map_or(Semaphore::MAX_PERMITS, |most| {
        most.clamp(BACKLOG, Semaphore::MAX_PERMITS)
    })
}

/// Does what a client asks for, one after another.
async fn answer(
    live: &Live,
    listener: &Arc<Listener>,
    client: IpAddr,
    mut asked: mpsc::Receiver<Asked>,
) {
    while let Some(asked) = asked.recv().await {
        match asked {
            Ok(Frame::Unsubscribe { id }) => listener.end(&id),
            Ok(Frame::Subscribe { id, action, params }) => {
                let mut left = Left::default();
                let wanted = Wanted {
                    id: Arc::clone(&id),
                    action,
                    params,
                };
                let subscribed = match live.draw(&client, &mut left) {
                    Ok(()) => live.subscribe(listener, wanted, &mut left).await,
                    Err(problem) => Err(problem),
                };
                if let Err(problem) = subscribed {
                    listener.refuse(Some(&id), &problem);
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
    asks: mpsc::Sender<Asked>,
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
        let asked = match (self.meter.draw(now), protocol::judge(text)) {
            (Draw::Sustained, _) => return Err(Close::FLOOD),
            (Draw::Taken, asked) => asked,
            (Draw::Refused, asked) => Err(self.too_many(asked)),
        };
        if let Err(TrySendError::Full(asked)) = self.asks.try_send(asked) {
            let Refusal { id, problem } = self.too_many(asked);
            self.listener.refuse(id.as_ref(), &problem);
        }
        Ok(())
    }

    /// Returns the refusal of a frame that is one too many.
    fn too_many(&self, asked: Asked) -> Refusal {
        let id = match asked {
            Ok(Frame::Subscribe { id, .. } | Frame::Unsubscribe { id }) => Some(id),
            Err(refusal) => refusal.id,
        };
        let per_second = self.live.config.limits.messages_per_second;
        Refusal {
            id,
            problem: protocol::too_many_frames(per_second),
        }
    }
}
