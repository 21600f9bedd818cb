//! HTTPS by itself: certificates from files or from an authority, served by name, renewed in time.
//!
//! An authority speaks ACME, by `instant-acme`: `rustls-acme` needs one fixed list of names, and here each project adds some.

mod acme;
mod budget;
pub mod challenges;
mod domains;
mod files;
mod issuance;
mod names;
mod pair;
mod served;
mod store;
mod validity;

use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::WantsServerCert;
use rustls::{ConfigBuilder, ServerConfig};

use self::acme::AcmeAuthority;
use self::budget::DOMAIN_ORDERS_PER_HOUR;
use self::challenges::PendingChallenges;
use self::files::CertificateFiles;
use self::issuance::{CertificateIssuance, IssuanceDependencies};
use self::served::ServedCertificates;
use self::store::AuthorityDirectory;
use crate::config::{CertificateSettings, Config};
use svc_base::clock::{Clock, Timestamp};

pub use budget::NameOwner;
pub use domains::{DomainCertificate, MAX_SERVED_DOMAINS, ServedDomain, ServedDomains};
pub use issuance::{CertifiedNames, FindOwnerFn};
pub use names::{NameKind, Names};

/// ALPN protocols, the preferred first.
const ALPN_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The TLS side of the server.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    served: Arc<ServedCertificates>,
    source: CertificateSource,
}

/// Source of certificates.
#[derive(Debug)]
enum CertificateSource {
    Files(Arc<Mutex<CertificateFiles>>),
    Authority(Arc<CertificateIssuance>, PendingChallenges),
}

impl Tls {
    /// Checks that the configured files are a pair, before a start makes anything. Blocks.
    ///
    /// # Errors
    /// When they are not, naming the setting.
    pub fn check(config: &Config) -> anyhow::Result<()> {
        match &config.certificates {
            Some(CertificateSettings::Files { cert, key }) => CertificateFiles::new(cert, key)
                .read_if_changed()
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Opens the configured source of certificates; `None` for plain HTTP. Blocks.
    ///
    /// # Errors
    /// When files are no pair, or `data/tls` cannot be used.
    pub fn open(
        config: &Config,
        clock: &Clock,
        certified: CertifiedNames,
    ) -> anyhow::Result<Option<Self>> {
        let Some(certificates) = &config.certificates else {
            return Ok(None);
        };
        let names = Names::new(config);
        let served = Arc::new(ServedCertificates::new(
            names.fixed().next().unwrap_or_default(),
        ));
        let source = match certificates {
            CertificateSettings::Files { cert, key } => {
                let mut files = CertificateFiles::new(cert, key);
                if let Some(open) = files.exposure_warning() {
                    tracing::warn!("{open}");
                }
                if let Some(pair) = files.read_if_changed()? {
                    warn_if_expired(pair.validity.ends, clock.now());
                    served.serve_for_all(&pair);
                }
                CertificateSource::Files(Arc::new(Mutex::new(files)))
            }
            CertificateSettings::Acme(acme) => {
                let store = AuthorityDirectory::open(&config.data, &acme.directory)?;
                let challenges = PendingChallenges::default();
                let authority = AcmeAuthority::new(acme, store.clone(), challenges.clone())?;
                let cap = |key, whole| config.limits.divide_cap(key, whole);
                let issuance = CertificateIssuance::open(IssuanceDependencies {
                    names,
                    served: Arc::clone(&served),
                    store,
                    authority: Box::new(authority),
                    certified,
                    clock: clock.clone(),
                    per_week: cap("projects_per_week", acme.projects_per_week.into()),
                    per_hour: cap("domain_orders_per_hour", DOMAIN_ORDERS_PER_HOUR),
                })?;
                CertificateSource::Authority(Arc::new(issuance), challenges)
            }
        };
        let mut server = server_config()?.with_cert_resolver(Arc::clone(&served) as _);
        server.alpn_protocols = ALPN_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        // Stateless tickets: strangers cannot fill or evict sessions here.
        server.ticketer = Ticketer::new()?;
        Ok(Some(Self {
            config: Arc::new(server),
            served,
            source,
        }))
    }

    /// Returns the configuration for a handshake, once its name has a certificate or the wait is over; without a certificate the handshake
    /// ends with an alert. `None` for a challenge that is not pending.
    pub async fn handshake_config(
        &self,
        name: Option<&str>,
        is_challenge: bool,
    ) -> Option<Arc<ServerConfig>> {
        if let CertificateSource::Authority(issuance, challenges) = &self.source {
            let name = self.served.effective_name(name);
            if is_challenge {
                return challenges.config_for(name);
            }
            issuance.ensure_certificate(name).await;
        }
        Some(Arc::clone(&self.config))
    }

    /// Returns what a request of plain HTTP that an authority sends is answered with, if it belongs to a challenge.
    pub fn http_challenge(&self, name: &str, token: &str) -> Option<String> {
        match &self.source {
            CertificateSource::Files(_) => None,
            CertificateSource::Authority(_, challenges) => challenges.http_answer(name, token),
        }
    }

    /// Stops serving the certificate of a domain that has ended; it is deleted by the next refresh.
    pub fn end_domain(&self, name: &str) {
        if let CertificateSource::Authority(issuance, _) = &self.source {
            issuance.end_domain(name);
        }
    }

    /// Stops ordering certificates.
    pub async fn stop(&self) {
        if let CertificateSource::Authority(issuance, _) = &self.source {
            issuance.stop().await;
        }
    }

    /// Reloads replaced files, or renews expiring certificates.
    ///
    /// # Errors
    /// When replaced files cannot be used: the earlier ones are served on.
    pub async fn refresh(&self, now: Timestamp) -> anyhow::Result<()> {
        let files = match &self.source {
            CertificateSource::Authority(issuance, _) => {
                issuance.renew().await;
                return Ok(());
            }
            CertificateSource::Files(files) => Arc::clone(files),
        };
        let looked = tokio::task::spawn_blocking(move || {
            files
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .read_if_changed()
        });
        if let Some(pair) = looked.await?? {
            let ends = pair.validity.ends;
            self.served.serve_for_all(&pair);
            tracing::info!(%ends, "the certificate was replaced");
            warn_if_expired(ends, now);
        }
        Ok(())
    }
}

fn warn_if_expired(ends: Timestamp, now: Timestamp) {
    if ends < now {
        tracing::warn!(%ends, "tls_cert: the certificate is not valid any more: replace the file, no restart is needed");
    }
}

/// Begins a server configuration with the settings that all have in common.
fn server_config() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_no_client_auth())
}
