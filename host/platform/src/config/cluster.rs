//! The `[cluster]` table: this server is a node of several.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::{CertificateSettings, Settings, check_origin, content, listen};

/// Most characters of a node's name, as of one label of a host's.
const MAX_NAME: usize = 63;
/// Standbys that have a commit before it is acknowledged, by default.
const SYNCED_STANDBYS: u16 = 1;
/// Seconds without a beat after which a node is taken for dead, by default.
const SUSPECT_SECONDS: u16 = 5;
/// Fewest of them: a node beats once a second, and stops to answer 1.5 seconds before it may be suspected.
const MIN_SUSPECT_SECONDS: u16 = 4;
/// Most of them.
const MAX_SUSPECT_SECONDS: u16 = 60;
/// Seconds for which open pages are served without news of control, by default.
const STALE_PAGES_SECONDS: u32 = 600;
/// Most of them.
const MAX_STALE_PAGES_SECONDS: u32 = 86_400;
/// Most bytes of a backend's database. A commit of all of it is read from the log at once, and sent to the ledger in one piece.
const MAX_DATABASE_BYTES: u64 = 256 << 20;

/// URL of the ledger. It may have a password, so nothing shows it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct LedgerUrl(String);

impl LedgerUrl {
    /// Returns the URL with its password, for the client of the ledger alone.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Refuses a URL of something else than PostgreSQL. The rest is for the client of the ledger to read.
    ///
    /// # Errors
    /// A text that names the setting, without the URL.
    pub fn checked(self, setting: &str) -> anyhow::Result<Self> {
        let schemes = ["postgresql://", "postgres://"];
        if !schemes.iter().any(|scheme| self.0.starts_with(scheme)) {
            bail!(
                "{setting} must begin with postgresql://, as in postgresql://svc@pg1,pg2,pg3/svc"
            );
        }
        Ok(self)
    }
}

impl From<String> for LedgerUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl std::fmt::Debug for LedgerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LedgerUrl(********)")
    }
}

impl Serialize for LedgerUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        super::masked(&self.0, serializer)
    }
}

/// The table as it is written; `None` is the default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterTable {
    /// Name of the node, which no other node has; the host's name by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// URL of the ledger; `SVC_CLUSTER_LEDGER` beats it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerUrl>,
    /// URL of the store of bytes that all nodes share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<Url>,
    /// Address on which other nodes reach this one.
    #[serde(
        deserialize_with = "listen::deserialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub peer_listen: Option<SocketAddr>,
    /// URL at which other nodes reach this one; that of `peer_listen` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_url: Option<Url>,
    /// Number of standbys that have a commit before it is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synced_standbys: Option<u16>,
    /// Seconds without a beat after which a node is taken for dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspect_seconds: Option<u16>,
    /// Seconds for which open pages are served without news of control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_pages_seconds: Option<u32>,
}

/// Settings of a node of a cluster.
#[derive(Clone, Debug, Serialize)]
pub struct ClusterSettings {
    /// Name of the node.
    pub name: String,
    /// URL of the ledger.
    pub ledger: LedgerUrl,
    /// URL of the store of bytes that all nodes share: `s3://bucket/prefix`, or a directory. Access to a bucket is [`Config::s3`].
    ///
    /// [`Config::s3`]: super::Config::s3
    pub bucket: Url,
    /// Address on which other nodes reach this one. Port 0 takes a free one.
    pub peer_listen: SocketAddr,
    /// Origin at which other nodes reach this one, if it is set.
    pub peer_url: Option<String>,
    /// Number of standbys that have a commit before it is acknowledged; 0 if the ledger is durable by itself.
    pub synced_standbys: u16,
    /// Seconds without a beat after which a node is taken for dead.
    pub suspect_seconds: u16,
    /// Seconds for which open pages are served without news of control.
    pub stale_pages_seconds: u32,
    /// Whether the node claims nothing while another one lives: `serve --standby` says so, and no file can.
    #[serde(skip)]
    pub standby: bool,
}

impl ClusterSettings {
    /// Time without a beat after which a node is taken for dead.
    #[must_use]
    pub fn suspect_after(&self) -> Duration {
        Duration::from_secs(self.suspect_seconds.into())
    }

    /// Returns the origin at which other nodes reach this one, whose listener has the address `bound`.
    #[must_use]
    pub fn peer_url(&self, bound: SocketAddr) -> String {
        let named = self.peer_url.clone();
        named.unwrap_or_else(|| format!("https://{bound}"))
    }
}

impl Settings {
    /// Returns the settings of the node, if the server is one of several.
    ///
    /// # Errors
    /// When one is missing or cannot be used, or when another setting does not go with them.
    #[allow(
        clippy::disallowed_methods,
        reason = "secrets of tables come from the environment"
    )]
    pub(super) fn node(
        &self,
        certificates: Option<&CertificateSettings>,
    ) -> anyhow::Result<Option<ClusterSettings>> {
        let Some(table) = &self.cluster else {
            if self.standby {
                bail!("--standby is for a node of several, and the settings have no [cluster]");
            }
            return Ok(None);
        };
        if self.dev {
            bail!("[cluster] and --dev do not go together: --dev is for this machine alone");
        }
        if self.content_url.is_some() {
            bail!(
                "[cluster] and content_url do not go together: content is in the cluster's `bucket`; leave content_url out"
            );
        }
        let most = self.limits.database_bytes;
        if most > MAX_DATABASE_BYTES {
            bail!(
                "[cluster] and limits.database_bytes = {most} do not go together: one write may change all of a database, and the ledger takes no more than {MAX_DATABASE_BYTES} bytes at once; set it to that or less"
            );
        }
        let asks = matches!(certificates, Some(CertificateSettings::Acme(_)));
        if asks || self.acme.is_some() {
            bail!(
                "[cluster] and certificates by ACME do not go together: leave [acme] out, and name files by `tls_cert` and `tls_key`, or have a proxy speak TLS"
            );
        }
        let ledger = std::env::var("SVC_CLUSTER_LEDGER").ok();
        let ledger = ledger.filter(|url| !url.is_empty()).map(LedgerUrl::from);
        table.resolve(ledger, self.standby).map(Some)
    }
}

impl ClusterTable {
    /// Checks the table, with the ledger that the environment has.
    fn resolve(&self, ledger: Option<LedgerUrl>, standby: bool) -> anyhow::Result<ClusterSettings> {
        let Some(ledger) = ledger.or_else(|| self.ledger.clone()) else {
            bail!("cluster.ledger is missing: set it in the file, or SVC_CLUSTER_LEDGER");
        };
        let Some(bucket) = self.bucket.clone() else {
            bail!("cluster.bucket is missing: name a bucket as s3://bucket/prefix");
        };
        let Some(peer_listen) = self.peer_listen else {
            bail!(
                "cluster.peer_listen is missing: name an address that the other nodes reach, such as 10.0.0.1:9443"
            );
        };
        let suspect = self.suspect_seconds.unwrap_or(SUSPECT_SECONDS);
        if !(MIN_SUSPECT_SECONDS..=MAX_SUSPECT_SECONDS).contains(&suspect) {
            bail!(
                "cluster.suspect_seconds must be {MIN_SUSPECT_SECONDS} to {MAX_SUSPECT_SECONDS}: it is {suspect}"
            );
        }
        let stale = self.stale_pages_seconds.unwrap_or(STALE_PAGES_SECONDS);
        if stale > MAX_STALE_PAGES_SECONDS {
            bail!(
                "cluster.stale_pages_seconds must be 0 to {MAX_STALE_PAGES_SECONDS}: it is {stale}"
            );
        }
        Ok(ClusterSettings {
            name: check_name(self.name.clone().unwrap_or_else(host_name))?,
            ledger: ledger.checked("cluster.ledger")?,
            bucket: content::check_bucket_url(bucket)?,
            peer_listen,
            peer_url: check_peer_url(self.peer_url.as_ref(), peer_listen)?,
            synced_standbys: self.synced_standbys.unwrap_or(SYNCED_STANDBYS),
            suspect_seconds: suspect,
            stale_pages_seconds: stale,
            standby,
        })
    }
}

/// Returns the name of this host, or nothing if it is no text.
fn host_name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_str().unwrap_or_default().to_owned()
}

/// Refuses a name that commands and logs could not show.
fn check_name(name: String) -> anyhow::Result<String> {
    let named = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(named) {
        bail!(
            "cluster.name must be 1 to {MAX_NAME} letters, digits, `-`, `.` or `_`, and no other node's: it is {name:?}"
        );
    }
    Ok(name)
}

/// Checks the URL for the other nodes. Without one they use the address of the listener, which must then be one that can be reached.
fn check_peer_url(url: Option<&Url>, listen: SocketAddr) -> anyhow::Result<Option<String>> {
    match url {
        Some(url) if url.scheme() != "https" => {
            bail!("cluster.peer_url must begin with https://: nodes speak TLS with each other")
        }
        Some(url) => check_origin("cluster.peer_url", url).map(Some),
        None if listen.ip().to_canonical().is_unspecified() => {
            bail!(
                "cluster.peer_url is missing: `peer_listen` is {listen}, every address of this machine; name the one at which the other nodes reach it"
            )
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEDGER: &str = "ledger = 'postgresql://svc:hush@pg1,pg2,pg3/svc'\n";
    const PLACES: &str = "bucket = 's3://pages/svc/'\npeer_listen = '10.0.0.1:9443'\n";

    fn read(toml: &str, ledger: Option<&str>) -> anyhow::Result<ClusterSettings> {
        let table: ClusterTable = toml::from_str(toml)?;
        table.resolve(ledger.map(|url| LedgerUrl(url.to_owned())), false)
    }

    fn resolve(toml: &str) -> anyhow::Result<super::super::Config> {
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{toml}"))?;
        settings.resolve(SocketAddr::from(([127, 0, 0, 1], 4321)))
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let node = read(&format!("{LEDGER}{PLACES}"), None).unwrap();
        assert_eq!(node.name, host_name());
        assert_eq!(node.bucket.as_str(), "s3://pages/svc");
        assert_eq!(node.synced_standbys, 1);
        assert_eq!(node.suspect_after(), Duration::from_secs(5));
        assert_eq!(node.stale_pages_seconds, 600);
        assert_eq!(node.peer_url(node.peer_listen), "https://10.0.0.1:9443");
        let toml = "name = 'n1'\nbucket = 'file:///srv/shared'\npeer_listen = ':0'\npeer_url = 'https://N1.example:9443/'\nsynced_standbys = 0";
        let node = read(toml, Some("postgres://pg/svc")).unwrap();
        assert_eq!((node.name.as_str(), node.synced_standbys), ("n1", 0));
        assert_eq!(node.ledger.as_str(), "postgres://pg/svc");
        assert_eq!(node.peer_url(node.peer_listen), "https://n1.example:9443");
    }

    #[test]
    fn the_environment_beats_the_file_and_no_password_is_shown() {
        let environment = "postgresql://svc:quiet@pg4/svc?password=silent";
        let node = read(&format!("{LEDGER}{PLACES}"), Some(environment)).unwrap();
        assert_eq!(node.ledger.as_str(), environment);
        let table: ClusterTable = toml::from_str(LEDGER).unwrap();
        let texts = [
            format!("{node:?}{table:?}"),
            toml::to_string(&node).unwrap(),
            toml::to_string(&table).unwrap(),
        ];
        for text in texts {
            for secret in ["hush", "quiet", "silent"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }

    #[test]
    fn what_cannot_work_is_named() {
        let all = format!("{LEDGER}{PLACES}");
        for (toml, says) in [
            (PLACES.to_owned(), "cluster.ledger is missing"),
            (
                format!("ledger = 'mysql://svc:hush@pg/svc'\n{PLACES}"),
                "cluster.ledger must begin with postgresql://",
            ),
            (
                format!("{LEDGER}peer_listen = '10.0.0.1:9443'"),
                "cluster.bucket is missing",
            ),
            (
                format!("{LEDGER}bucket = 'memory:///'\npeer_listen = '10.0.0.1:9443'"),
                "cluster.bucket must be",
            ),
            (
                format!("{LEDGER}bucket = 's3://me:hush@pages/svc'\npeer_listen = '10.0.0.1:9443'"),
                "cluster.bucket: a bucket is named as",
            ),
            (
                format!("{LEDGER}bucket = 's3://pages'"),
                "cluster.peer_listen is missing",
            ),
            (
                format!("{LEDGER}bucket = 's3://pages'\npeer_listen = ':9443'"),
                "cluster.peer_url is missing",
            ),
            (
                format!("{all}peer_url = 'http://10.0.0.1:9443'"),
                "cluster.peer_url must begin with https://",
            ),
            (
                format!("{all}peer_url = 'https://10.0.0.1:9443/peer'"),
                "cluster.peer_url must be an origin",
            ),
            (format!("{all}name = ''"), "cluster.name"),
            (format!("{all}name = 'n 1'"), "cluster.name"),
            (format!("{all}suspect_seconds = 3"), "4 to 60"),
            (format!("{all}suspect_seconds = 61"), "4 to 60"),
            (format!("{all}stale_pages_seconds = 86401"), "0 to 86400"),
            (format!("{all}synced_standbys = -1"), "synced_standbys"),
            (format!("{all}peers = 3"), "unknown field"),
        ] {
            let error = format!("{:#}", read(&toml, None).unwrap_err());
            assert!(error.contains(says), "{toml}: {error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn settings_of_one_machine_do_not_go_with_it() {
        let cluster = format!("[cluster]\n{LEDGER}{PLACES}");
        let https = "https = true\nbase_url = 'https://share.example.com'\n";
        for (toml, says) in [
            (
                format!("content_url = 's3://others'\n{cluster}"),
                "content_url",
            ),
            (format!("{cluster}[acme]"), "[acme]"),
            (
                format!("{cluster}[limits]\ndatabase_bytes = 268435457"),
                "no more than 268435456 bytes",
            ),
            (format!("{https}{cluster}"), "[acme]"),
        ] {
            let error = format!("{:#}", resolve(&toml).unwrap_err());
            assert!(
                error.contains("[cluster]") && error.contains(says),
                "{error}"
            );
        }
        let files = format!("tls_cert = '/a'\ntls_key = '/b'\n{https}{cluster}");
        let config = resolve(&files).unwrap();
        assert!(config.cluster.is_some() && config.s3.is_some());
        assert!(resolve("").unwrap().cluster.is_none());
        let table = toml::from_str(&format!("{LEDGER}{PLACES}")).unwrap();
        for (cluster, dev, standby, says) in [
            (Some(table), true, false, "--dev"),
            (None, false, true, "--standby"),
        ] {
            let settings = Settings {
                cache: Some("/c".into()),
                cluster,
                dev,
                standby,
                ..Settings::default()
            };
            let address = SocketAddr::from(([127, 0, 0, 1], 4321));
            let error = settings.resolve(address).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
