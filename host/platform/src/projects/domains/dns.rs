//! DNS as it proves domains: the records of a name, looked up in bounded time, or no usable answer.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::config::DomainSettings;

/// Longest time of a look-up with all its hops.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(8);
/// Longest time of one request to a resolver.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Most hops of CNAME records.
const MAX_HOPS: usize = 16;
/// Most records that are reported, and most characters of a text.
const MAX_RECORDS: usize = 100;
const MAX_TEXT_CHARS: usize = 255;
/// Label of the TXT record, below which the name stands.
const TXT_LABEL: &str = "_svc";

/// A record as it is shown to owners.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct DnsRecord {
    /// Type of the record.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "CNAME")]
    pub kind: &'static str,
    /// Name that has the record.
    #[schema(example = "www.example.com")]
    pub name: String,
    /// Value of the record.
    #[schema(example = "d-3k5vqg2m7xw4t8z6b2c9f5hnjr.pages.example.net")]
    pub value: String,
}

impl DnsRecord {
    /// Makes the CNAME record that leads a name to a target.
    pub(super) fn cname(name: &str, target: String) -> Self {
        Self {
            kind: "CNAME",
            name: name.to_owned(),
            value: target,
        }
    }

    /// Makes the TXT record that proves a name.
    pub(super) fn txt(name: &str, value: String) -> Self {
        Self {
            kind: "TXT",
            name: format!("{TXT_LABEL}.{name}"),
            value,
        }
    }
}

/// Records of DNS that may prove a name.
#[derive(Debug)]
pub(super) struct DnsAnswer {
    /// Records that are there.
    pub(super) records: Vec<DnsRecord>,
    /// Reason why one kind of records has no usable answer, if one has none.
    pub(super) missing: Option<DnsUnavailable>,
}

/// No usable answer of DNS.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DnsUnavailable(String);

impl DnsUnavailable {
    /// Makes the error of a check that came to nothing, for a reason that is a sentence's end.
    pub(super) fn because(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Client of a resolver.
pub(super) struct DnsClient {
    settings: DomainSettings,
    resolver: OnceCell<TokioResolver>,
}

impl fmt::Debug for DnsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DnsClient").field(&self.settings).finish()
    }
}

impl DnsClient {
    /// Makes a client of the configured resolver, which is first asked when a domain is.
    pub(super) fn new(settings: Option<&DomainSettings>) -> Self {
        Self {
            settings: settings.cloned().unwrap_or_default(),
            resolver: OnceCell::new(),
        }
    }

    /// Returns the records by which a name may be proven: the hops of its CNAME, as far as `is_last`, and its TXT records.
    ///
    /// # Errors
    /// [`DnsUnavailable`] if neither has a usable answer.
    pub(super) async fn look_up(
        &self,
        name: &str,
        is_last: impl Fn(&str) -> bool,
    ) -> Result<DnsAnswer, DnsUnavailable> {
        let resolver = self.resolver.get_or_try_init(|| self.connect()).await?;
        let late = || Err(DnsUnavailable::because("it took too long"));
        let (hops, texts) = tokio::join!(
            timeout(LOOKUP_TIMEOUT, follow_hops(resolver, name, is_last)),
            timeout(LOOKUP_TIMEOUT, read_texts(resolver, name))
        );
        let hops = hops.unwrap_or_else(|_| late());
        let texts = texts.unwrap_or_else(|_| late());
        match (hops, texts) {
            (Ok(hops), Ok(texts)) => Ok(DnsAnswer {
                records: [hops, texts].concat(),
                missing: None,
            }),
            (Ok(records), Err(why)) | (Err(why), Ok(records)) => Ok(DnsAnswer {
                records,
                missing: Some(why),
            }),
            (Err(why), Err(_)) => Err(why),
        }
    }

    /// Makes the resolver.
    async fn connect(&self) -> Result<TokioResolver, DnsUnavailable> {
        let failed = |error: &dyn fmt::Display| DnsUnavailable(error.to_string());
        let builder = match self.settings.resolver() {
            None => TokioResolver::builder_tokio().map_err(|error| failed(&error))?,
            Some((host, port)) => {
                let found = tokio::net::lookup_host((host.as_str(), port)).await;
                let mut found = found.map_err(|error| failed(&error))?;
                let address = found.next().map(|address| address.ip());
                let ip = address.ok_or_else(|| failed(&"the resolver has no address"))?;
                let config = ResolverConfig::from_parts(None, vec![], vec![server(ip, port)]);
                let runtime = TokioRuntimeProvider::default();
                TokioResolver::builder_with_config(config, runtime)
            }
        };
        let resolver = builder.with_options(options()).build();
        resolver.map_err(|error| failed(&error))
    }
}

/// Returns the settings of one resolver.
fn server(ip: IpAddr, port: u16) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(ip);
    let at_port = |connection: &mut ConnectionConfig| connection.port = port;
    server.connections.iter_mut().for_each(at_port);
    server
}

/// Nothing is cached: who has just set a record is to see it.
fn options() -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = REQUEST_TIMEOUT;
    options.attempts = 1;
    options.cache_size = 0;
    options.positive_max_ttl = Some(Duration::ZERO);
    options.negative_max_ttl = Some(Duration::ZERO);
    options.use_hosts_file = ResolveHosts::Never;
    options.try_tcp_on_error = true;
    options
}

/// Follows CNAME records hop by hop, so that one whose end has no address is seen, too.
async fn follow_hops(
    resolver: &TokioResolver,
    name: &str,
    is_last: impl Fn(&str) -> bool,
) -> Result<Vec<DnsRecord>, DnsUnavailable> {
    let mut hops = Vec::new();
    let mut known = HashSet::from([name.to_owned()]);
    let mut at = name.to_owned();
    while hops.len() < MAX_HOPS && !is_last(&at) {
        let answers = query(resolver, &at, RecordType::CNAME).await?;
        let Some(target) = answers.iter().find_map(|record| cname_of(record, &at)) else {
            break;
        };
        hops.push(DnsRecord::cname(&at, target.clone()));
        if !known.insert(target.clone()) {
            break;
        }
        at = target;
    }
    Ok(hops)
}

/// Reads the TXT records by which a name may be proven.
async fn read_texts(
    resolver: &TokioResolver,
    name: &str,
) -> Result<Vec<DnsRecord>, DnsUnavailable> {
    let asked = format!("{TXT_LABEL}.{name}");
    let answers = query(resolver, &asked, RecordType::TXT).await?;
    // The records may stand at the end of a CNAME, and nowhere else.
    let mut owner = asked;
    for _ in 0..MAX_HOPS {
        match answers.iter().find_map(|record| cname_of(record, &owner)) {
            Some(target) => owner = target,
            None => break,
        }
    }
    let own = answers
        .iter()
        .filter(|record| name_of(&record.name) == owner);
    let texts = own.filter_map(|record| match &record.data {
        RData::TXT(text) => Some(text.txt_data.concat()),
        _ => None,
    });
    let texts = texts.take(MAX_RECORDS);
    let texts = texts.map(|text| {
        String::from_utf8_lossy(&text)
            .chars()
            .take(MAX_TEXT_CHARS)
            .collect()
    });
    Ok(texts.map(|text| DnsRecord::txt(name, text)).collect())
}

/// Asks for the records of a name; none at all is an answer, too.
async fn query(
    resolver: &TokioResolver,
    name: &str,
    kind: RecordType,
) -> Result<Vec<Record>, DnsUnavailable> {
    let unusable = |error: &dyn fmt::Display| DnsUnavailable(format!("{name} {kind}: {error}"));
    // With a dot at its end, so that no search list changes it.
    let absolute = Name::from_ascii(format!("{name}.")).map_err(|error| unusable(&error))?;
    match resolver.lookup(absolute, kind).await {
        Ok(found) => Ok(found.answers().to_vec()),
        Err(NetError::Dns(DnsError::NoRecordsFound(none)))
            if matches!(
                none.response_code,
                ResponseCode::NXDomain | ResponseCode::NoError
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(unusable(&error)),
    }
}

/// Returns the target of a CNAME record, if it is one of a name.
fn cname_of(record: &Record, name: &str) -> Option<String> {
    match &record.data {
        RData::CNAME(target) if name_of(&record.name) == name => Some(name_of(&target.0)),
        _ => None,
    }
}

/// Returns a name in lower case and without the dot at its end.
fn name_of(name: &Name) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}
