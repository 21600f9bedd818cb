//! The owner's console: screens on a host of its own, which call the operations of owners there.
//!
//! The screens are files of `host/assets/console`, served as they lie there: one document for all addresses, and modules by their digests,
//! which an import map names. The host holds nothing of tenants and strangers, takes nothing from other origins, and sets no cookie.

mod files;
mod headers;
pub mod routes;
mod settings;
mod shell;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::OnceCell;

use self::files::ConsoleFiles;
use crate::access::Authenticator;
use crate::config::Config;
use crate::http::document::EncodedDocument;

pub use headers::add_protective_headers;
pub use routes::check_origin;

/// The console's files, and its settings for browsers.
#[derive(Debug)]
pub struct Console {
    config: Arc<Config>,
    authenticator: Authenticator,
    files: ConsoleFiles,
    document: OnceCell<EncodedDocument>,
    /// Whether the log says why people cannot sign in at the issuer: once is enough.
    is_issuer_fault_logged: AtomicBool,
}

/// Returns the link of a code. The code is in the fragment, which browsers send nowhere.
pub fn login_link(console_url: &str, code: &str) -> String {
    format!("{console_url}/login#{code}")
}

impl Console {
    /// Makes the console of an installation. Nothing is compressed yet.
    pub fn new(config: Arc<Config>, authenticator: Authenticator) -> Self {
        Self {
            config,
            authenticator,
            files: ConsoleFiles::default(),
            document: OnceCell::new(),
            is_issuer_fault_logged: AtomicBool::new(false),
        }
    }

    /// Returns the document of all screens, which is made at the first call.
    ///
    /// # Errors
    /// Only when a compressor fails, or the process ends meanwhile.
    async fn document(&self) -> io::Result<&EncodedDocument> {
        let make = async || {
            let shell = shell::ConsoleShell::new(&self.config, self.files.all());
            let made = tokio::task::spawn_blocking(move || shell.into_document());
            made.await.map_err(io::Error::other)?
        };
        self.document.get_or_try_init(make).await
    }
}
