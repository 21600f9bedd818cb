//! WebSockets (RFC 6455) as this server speaks them: text messages in, shared frames out.
//!
//! The codec is our own because of what a relay needs and libraries do not offer: an idle socket holds no buffer, a frame is
//! encoded once for all who get it, and everything that waits for a socket goes out in one write. Tests hold it against
//! tungstenite (`tests/http/rooms/frames.rs`).

mod close;
pub mod frame;
mod handshake;
mod outbox;
mod socket;
mod wire;

pub use close::Close;
pub use handshake::{Accepted, Upgrade};
pub use outbox::{Full, Outbox};
pub use socket::{Incoming, Socket};
