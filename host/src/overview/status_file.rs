//! Status of a server, for the commands beside it: a small file in the data directory.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Limits};
use crate::log::{self, LoggedError};
use svc_base::clock::Timestamp;
use svc_base::disk;

/// The name of the file; it stays when its server ends.
const FILE: &str = "server.status";

/// Status of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusFile {
    /// Version of the server.
    pub version: String,
    /// The system's number of its process.
    pub process: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether it speaks TLS there.
    #[serde(default)]
    pub tls: bool,
    /// Where its numbers are.
    pub ops_address: Option<SocketAddr>,
    /// The origin of its API.
    pub base_url: String,
    /// The domain of projects' origins.
    pub sites_domain: Option<String>,
    /// Limits of the server.
    pub limits: Limits,
    /// The latest errors that it logged, oldest first.
    pub errors: Vec<LoggedError>,
}

impl StatusFile {
    /// Of a server that begins.
    pub fn new(config: &Config, ops_address: Option<SocketAddr>, started_at: Timestamp) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            started_at,
            address: config.listen,
            tls: config.https,
            ops_address,
            base_url: config.base_url.clone(),
            sites_domain: config.sites_domain.clone(),
            limits: config.limits.clone(),
            errors: log::recent_errors(),
        }
    }

    /// Says it again if there are new errors. Blocks.
    pub fn write_if_changed(&mut self, data: &Path) -> io::Result<()> {
        let errors = log::recent_errors();
        if self.errors != errors {
            self.errors = errors;
            write(data, FILE, self)?;
        }
        Ok(())
    }

    /// Says it whatever is there.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        write(data, FILE, self)
    }
}

/// Reads what the server, or the last one, said. What another version of this program has written says nothing.
pub fn read(data: &Path) -> io::Result<Option<StatusFile>> {
    read_json(data, FILE)
}

/// Reads a small file of ours, if it is there and in a form that we know.
pub fn read_json<T: DeserializeOwned>(data: &Path, name: &str) -> io::Result<Option<T>> {
    match std::fs::read(data.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(serde_json::from_slice(&text?).ok()),
    }
}

/// Writes a small file that nobody relies on after a power cut, so it is not synced; a reader finds the old one or the new one.
pub fn write(data: &Path, name: &str, content: &impl Serialize) -> io::Result<()> {
    disk::replace_file_unsynced(data, name, &serde_json::to_vec(content)?)
}
