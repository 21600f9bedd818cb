//! Harness of the tests: the real server, in this process or as one of its own, and its answers.

mod answer;
pub mod browser;
pub mod bucket;
pub mod cluster;
pub mod disk;
pub mod guests;
pub mod hostile;
mod http_client;
mod issuer;
mod kills;
pub mod postgres;
mod process;
mod random_frames;
mod raw_websocket;
mod realtime_server;
mod resources;
mod seeded_rng;
mod server;
mod socket;
mod sync_gate;
pub mod tls;
mod wait;

pub use answer::{Answer, ReadAnswer, exchange};
pub use http_client::http_client;
pub use issuer::{AUDIENCE, TokenIssuer};
pub use kills::Installation;
pub use process::{Binary, Output, Process, run_command};
pub use random_frames::send_random_frames;
pub use raw_websocket::{RawWebSocket, masked_frame};
pub use realtime_server::RealtimeServer;
pub use resources::Resources;
pub use seeded_rng::SeededRng;
pub use server::{Builder, CONTENT_URL_VARIABLE, NOW, TestServer, guest_cache_dir};
pub use socket::{Socket, SocketEvent};
pub use sync_gate::SyncGate;
pub use wait::{DEADLINE, wait_until};
