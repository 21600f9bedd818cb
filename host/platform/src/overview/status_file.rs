//! The status file of a server in the data directory, for commands.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Limits};
use crate::log::{self, LoggedError};
use svc_base::clock::Timestamp;
use svc_base::disk;

/// Name of the file, which stays when its server ends.
const STATUS_FILE: &str = "server.status";

/// Status of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusFile {
    /// Version of the server.
    pub version: String,
    /// Process id.
    pub process: u32,
    /// Time of the start.
    pub started_at: Timestamp,
    /// Address of the listener.
    pub address: SocketAddr,
    /// Whether the listener speaks TLS.
    #[serde(default)]
    pub tls: bool,
    /// Address of the operators' listener.
    pub ops_address: Option<SocketAddr>,
    /// Origin of the API.
    pub base_url: String,
    /// Domain of projects' origins.
    pub sites_domain: Option<String>,
    /// Origin of the owner's console.
    #[serde(default)]
    pub console_url: Option<String>,
    /// Limits of the server.
    pub limits: Limits,
    /// Latest logged errors, oldest first.
    pub errors: Vec<LoggedError>,
}

impl StatusFile {
    /// Makes the status of a starting server.
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
            console_url: config.console_url.clone(),
            limits: config.limits.clone(),
            errors: log::recent_errors(),
        }
    }

    /// Writes the file again if there are new errors. Blocks.
    pub fn write_if_changed(&mut self, data: &Path) -> io::Result<()> {
        let errors = log::recent_errors();
        if self.errors != errors {
            self.errors = errors;
            write(data, STATUS_FILE, self)?;
        }
        Ok(())
    }

    /// Writes the file.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        write(data, STATUS_FILE, self)
    }
}

/// Reads the status of the running or the last server; `None` if another version has written it in an unknown form.
pub fn read(data: &Path) -> io::Result<Option<StatusFile>> {
    read_json(data, STATUS_FILE)
}

/// Reads a JSON file; `None` if it is missing or in an unknown form.
pub fn read_json<T: DeserializeOwned>(data: &Path, name: &str) -> io::Result<Option<T>> {
    match std::fs::read(data.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(serde_json::from_slice(&text?).ok()),
    }
}

/// Replaces a JSON file atomically. It is not synced: it is not needed after a power cut.
pub fn write(data: &Path, name: &str, content: &impl Serialize) -> io::Result<()> {
    disk::replace_file_unsynced(data, name, &serde_json::to_vec(content)?)
}
