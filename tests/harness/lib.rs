//! Harness of the tests: the real server, in this process or as one of its own, and its answers.

mod answer;
pub mod browser;
pub mod disk;
pub mod guests;
pub mod hostile;
mod http_client;
mod issuer;
mod kills;
mod numbers;
mod process;
mod server;
mod socket;
mod wait;

pub use answer::{Answer, Ask, exchange};
pub use http_client::http_client;
pub use issuer::{AUDIENCE, TokenIssuer};
pub use kills::Installation;
pub use numbers::Numbers;
pub use process::{Binary, Output, Process, finish};
pub use server::{Builder, NOW, TestServer, cache};
pub use socket::{Heard, Socket};
pub use wait::{DEADLINE, until};
