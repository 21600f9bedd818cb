//! The minimal relay: axum, one broadcast channel a room, texts sent on as they came. What a delivery costs at the least.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::sync::broadcast;

/// Makes this program the minimal relay.
pub(crate) const ARGUMENT: &str = "minimal-rooms";
/// Messages that wait for a slow client, before it misses some.
const QUEUE: usize = 1024;

/// A message, and the client that sent it.
type Said = (u64, Utf8Bytes);
type Rooms = Arc<Mutex<HashMap<String, broadcast::Sender<Said>>>>;

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
    let room = {
        let mut rooms = rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.entry(room);
        room.or_insert_with(|| broadcast::channel(QUEUE).0).clone()
    };
    upgrade.on_upgrade(move |socket| relay(socket, room))
}

async fn relay(mut socket: WebSocket, room: broadcast::Sender<Said>) {
    let mut said = room.subscribe();
    // Any number that no other client has.
    let me = said.len() as u64 ^ std::ptr::from_ref(&socket).addr() as u64;
    loop {
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    // Nobody else being there is no error.
                    let _ = room.send((me, text));
                }
                Some(Ok(_)) => {}
                _ => return,
            },
            heard = said.recv() => match heard {
                Ok((sender, text)) if sender != me => {
                    if socket.send(Message::Text(text)).await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}
