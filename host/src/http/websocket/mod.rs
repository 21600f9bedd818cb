//! WebSockets (RFC 6455) as this server speaks them: text messages in, shared frames out.
//!
//! The protocol is tungstenite's. What is sent is our own ([`Outbox`]), because a relay encodes a frame once for everybody who gets it,
//! and writes all that waits for a socket at once, from the thread that has it.

mod close;
pub mod frame;
mod handshake;
mod outbox;
mod reader;
mod socket;
mod wire;

pub use close::Close;
pub use handshake::{AcceptedUpgrade, Upgrade};
pub use outbox::{FlushResult, Outbox, OutboxClosed};
pub use reader::{Event, ReadResult, Reader};
pub use socket::{Incoming, Socket};
