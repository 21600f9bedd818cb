//! The minimal relay: axum with tungstenite, and a broadcast channel a room. A message goes on as it came, and all that waits for a client is
//! flushed at once. It has no queue of a client, no numbers, no presence and no pings: a client that is slow misses messages.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Argument that starts this program as the minimal relay.
pub(crate) const ARGUMENT: &str = "minimal-rooms";
/// Messages that a room keeps for slow clients, before they miss some.
const QUEUE: usize = 4096;

/// A message, and the client that sent it.
type RoomMessage = (u64, Utf8Bytes);

/// Rooms by name.
#[derive(Clone, Default)]
struct Rooms {
    channels: Arc<Mutex<HashMap<String, broadcast::Sender<RoomMessage>>>>,
    clients: Arc<AtomicU64>,
}

/// Relays until it is killed.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let listener = listener.tap_io(|stream| {
            // A socket that refuses works anyway.
            let _ = stream.set_nodelay(true);
        });
        writeln!(std::io::stdout(), "ready http://{address}")?;
        let router = Router::new()
            .route("/{room}", get(join))
            .with_state(Rooms::default());
        Ok(axum::serve(listener, router).await?)
    })
}

async fn join(
    State(rooms): State<Rooms>,
    Path(room): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let channel = {
        let mut channels = rooms
            .channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let channel = channels.entry(room);
        channel
            .or_insert_with(|| broadcast::channel(QUEUE).0)
            .clone()
    };
    let client = rooms.clients.fetch_add(1, Ordering::Relaxed);
    upgrade.on_upgrade(move |socket| relay(socket, client, channel))
}

async fn relay(socket: WebSocket, client: u64, room: broadcast::Sender<RoomMessage>) {
    let (writing, mut reading) = socket.split();
    let writer = tokio::spawn(write(writing, client, room.subscribe()));
    while let Some(Ok(message)) = reading.next().await {
        if let Message::Text(text) = message {
            // An empty room is no error.
            let _ = room.send((client, text));
        }
    }
    writer.abort();
}

/// Feeds all that waits for a client, then flushes, until the client is gone.
async fn write(
    mut socket: SplitSink<WebSocket, Message>,
    client: u64,
    mut room: broadcast::Receiver<RoomMessage>,
) {
    loop {
        let mut next = match room.recv().await {
            Ok(sent) => Some(sent),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        while let Some((sender, text)) = next {
            if sender != client && socket.feed(Message::Text(text)).await.is_err() {
                return;
            }
            next = room.try_recv().ok();
        }
        if socket.flush().await.is_err() {
            return;
        }
    }
}
