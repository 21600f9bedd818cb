//! HTTPS by itself: certificates from files or from an authority, served by name, renewed in time.
//!
//! An authority is asked by ACME (`instant-acme`: `rustls-acme` has one fixed list of names, and names come here with projects).

mod acme;
mod budget;
pub mod challenges;
mod files;
mod issuance;
mod names;
mod pair;
mod shelf;
mod store;
mod validity;

use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::WantsServerCert;
use rustls::{ConfigBuilder, ServerConfig};

use self::acme::AcmeAuthority;
use self::challenges::Challenges;
use self::files::Files;
use self::issuance::{Issuance, Parts};
use self::shelf::Shelf;
use self::store::Store;
use crate::config::{Certificates, Config};
use svc_base::clock::{Clock, Timestamp};

pub use budget::LabelOwner;
pub use issuance::FindOwner;
pub use names::{Name, Names};

/// Protocols over TLS, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// HTTPS: what handshakes are answered with.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    shelf: Arc<Shelf>,
    source: Source,
}

/// Where certificates come from.
#[derive(Debug)]
enum Source {
    Files(Arc<Mutex<Files>>),
    Authority(Arc<Issuance>, Challenges),
}

impl Tls {
    /// Looks whether the files of the settings are a pair, before anything is made. Blocks.
    ///
    /// # Errors
    /// When they are not, naming the setting.
    pub fn check(config: &Config) -> anyhow::Result<()> {
        match &config.certificates {
            Some(Certificates::Files { cert, key }) => Files::new(cert, key).look().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Opens what the settings say; `None` where they say plain HTTP. Blocks.
    ///
    /// # Errors
    /// When files are no pair, or `data/tls` cannot be used.
    pub fn open(
        config: &Config,
        clock: &Clock,
        find_owner: FindOwner,
    ) -> anyhow::Result<Option<Self>> {
        let Some(certificates) = &config.certificates else {
            return Ok(None);
        };
        let names = Names::new(config);
        let shelf = Arc::new(Shelf::new(names.fixed().next().unwrap_or_default()));
        let source = match certificates {
            Certificates::Files { cert, key } => {
                let mut files = Files::new(cert, key);
                if let Some(open) = files.is_open() {
                    tracing::warn!("{open}");
                }
                if let Some(pair) = files.look()? {
                    warn_of_end(pair.validity.ends, clock.now());
                    shelf.put_for_all(&pair);
                }
                Source::Files(Arc::new(Mutex::new(files)))
            }
            Certificates::Acme(acme) => {
                let store = Store::open(&config.data, &acme.directory)?;
                let challenges = Challenges::default();
                let authority = AcmeAuthority::new(acme, store.clone(), challenges.clone())?;
                let issuance = Issuance::open(Parts {
                    names,
                    shelf: Arc::clone(&shelf),
                    store,
                    authority: Box::new(authority),
                    find_owner,
                    clock: clock.clone(),
                    per_week: config
                        .limits
                        .cap("projects_per_week", acme.projects_per_week.into()),
                })?;
                Source::Authority(Arc::new(issuance), challenges)
            }
        };
        let mut server = server_config()?.with_cert_resolver(Arc::clone(&shelf) as _);
        server.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // Kept by clients, so that a stranger cannot fill or empty what is remembered here.
        server.ticketer = Ticketer::new()?;
        Ok(Some(Self {
            config: Arc::new(server),
            shelf,
            source,
        }))
    }

    /// Configuration that answers a handshake, once there is a certificate for its name or will not be one in time; a handshake without a certificate
    /// ends by an alert. `None` where an authority asks for a proof that is not due.
    pub async fn answer(
        &self,
        name: Option<&str>,
        is_challenge: bool,
    ) -> Option<Arc<ServerConfig>> {
        if let Source::Authority(issuance, challenges) = &self.source {
            let name = self.shelf.meant(name);
            if is_challenge {
                return challenges.of(name);
            }
            issuance.see_to(name).await;
        }
        Some(Arc::clone(&self.config))
    }

    /// Asks for nothing any more.
    pub async fn end(&self) {
        if let Source::Authority(issuance, _) = &self.source {
            issuance.end().await;
        }
    }

    /// Follows what changes: files that were replaced, certificates that end.
    ///
    /// # Errors
    /// When files that were replaced cannot be used: those before go on.
    pub async fn follow(&self, now: Timestamp) -> anyhow::Result<()> {
        let files = match &self.source {
            Source::Authority(issuance, _) => {
                issuance.renew().await;
                return Ok(());
            }
            Source::Files(files) => Arc::clone(files),
        };
        let looked = tokio::task::spawn_blocking(move || {
            files.lock().unwrap_or_else(PoisonError::into_inner).look()
        });
        if let Some(pair) = looked.await?? {
            let ends = pair.validity.ends;
            self.shelf.put_for_all(&pair);
            tracing::info!(%ends, "the certificate was replaced");
            warn_of_end(ends, now);
        }
        Ok(())
    }
}

fn warn_of_end(ends: Timestamp, now: Timestamp) {
    if ends < now {
        tracing::warn!(%ends, "tls_cert: the certificate is not valid any more: replace the file, no restart is needed");
    }
}

/// Begins the configuration of a handshake with what all of them have in common.
fn server_config() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth())
}
