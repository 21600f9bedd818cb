//! WebSockets (RFC 6455) as this server speaks them: text messages in, shared frames out.
//!
//! tungstenite parses the protocol. Sending is our own ([`Outbox`]), because a relay encodes a frame once for all receivers, and writes
//! all frames that wait for a socket at once, from any thread.

mod close;
pub mod frame;
mod handshake;
mod outbox;
mod reader;
mod socket;
mod wire;

pub use close::CloseReason;
pub use handshake::{AcceptedUpgrade, UpgradeRequest};
pub use outbox::{Outbox, OutboxClosed, OutboxWriteCounts};
pub use reader::{EventResult, FrameReader, ReaderEvent};
pub use socket::{SocketEvent, UpgradedSocket};
