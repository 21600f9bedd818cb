//! NATS, if it is installed: its listener for WebSockets, with its default limits.

use std::path::PathBuf;
use std::process::Command;

use super::server::{Bench, Running, free_address, on_path};

/// Hint printed where it is not installed.
pub(crate) const NOT_INSTALLED: &str = "NATS is not installed: put `nats-server` on PATH, or name it with --nats. Debian has it as nats-server.";

/// Starts NATS; `None` if it is not installed.
pub(crate) fn start(bench: &Bench, given: Option<PathBuf>) -> anyhow::Result<Option<Running>> {
    let Some(program) = given.or_else(|| on_path("nats-server")) else {
        return Ok(None);
    };
    let address = free_address()?;
    let settings = bench.directory("nats.conf");
    // Pings come as often as in rooms.
    let lines = format!(
        "host: \"127.0.0.1\"\nport: -1\nping_interval: \"25s\"\nwebsocket {{ host: \"127.0.0.1\", port: {}, no_tls: true, compression: false }}\n",
        address.port()
    );
    std::fs::write(&settings, lines)?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&settings);
    Running::start_at(command, address).map(Some)
}
