//! Harness of the tests: the real server, in this process or as one of its own, and its answers.

mod answer;
pub mod browser;
pub mod bucket;
pub mod disk;
pub mod guests;
mod hall;
pub mod hostile;
mod http_client;
mod issuer;
mod kills;
mod numbers;
mod process;
mod raw;
mod resources;
mod server;
mod socket;
mod syncs;
mod thrown;
pub mod tls;
mod wait;

pub use answer::{Answer, Ask, exchange};
pub use hall::Hall;
pub use http_client::http_client;
pub use issuer::{AUDIENCE, TokenIssuer};
pub use kills::Installation;
pub use numbers::Numbers;
pub use process::{Binary, Output, Process, finish};
pub use raw::{Raw, masked};
pub use resources::Resources;
pub use server::{Builder, CONTENT, NOW, TestServer, cache};
pub use socket::{Heard, Socket};
pub use syncs::Syncs;
pub use thrown::throw;
pub use wait::{DEADLINE, until};
