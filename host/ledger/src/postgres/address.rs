//! The URL of the ledger: which servers it names, and how they are reached.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::tls::Trust;

/// Time limit for a connection to one address of a server, unless the URL has a shorter one: with a longer one, a run might not find
/// the server that goes on before others take it for dead.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which what was sent and not received ends a connection, unless the URL has another.
const SENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which a server is asked whether it is there, and the time between two such questions.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// Questions without an answer that end a connection.
const KEEPALIVE_RETRIES: u32 = 2;

/// Servers that a URL names.
pub(super) struct Address {
    /// Server and its settings: one of them takes writes at a time.
    pub(super) servers: Vec<(String, Config)>,
    /// Certificates that they may show.
    pub(super) trust: Trust,
}

/// Reads a URL as PostgreSQL's own clients do, with several hosts.
///
/// `sslmode=prefer`, which is meant without one, speaks TLS where the server does, and takes any certificate. `require` and the
/// rest verify it, `sslrootcert` names a file of authorities. Which server takes writes is found out, whatever the URL says.
///
/// # Errors
/// A text that says what is wrong, without the URL, which may have a password.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
        return Err("it must begin with postgresql://".to_owned());
    }
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut kept = Vec::new();
    let mut roots = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslrootcert", path)) => {
                let path = percent_decode_str(path).decode_utf8();
                roots = Some(path.map_err(|_| "sslrootcert is not UTF-8")?.into_owned());
            }
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            Some(("target_session_attrs", _)) => {}
            _ => kept.push(pair),
        }
    }
    let all = format!("{address}?{}", kept.join("&"))
        .parse::<Config>()
        .map_err(|error| match query.contains('@') {
            // What is taken for the name of an option would be said.
            true => {
                "it cannot be read: in a password, @ is written %40 and ? is written %3F".to_owned()
            }
            false => super::text(&error),
        })?;
    let count = all.get_hosts().len().max(all.get_hostaddrs().len());
    if count == 0 {
        return Err("it names no host".to_owned());
    }
    if all.get_ports().len() > 1 && all.get_ports().len() != count {
        return Err("it names neither one port nor one for each host".to_owned());
    }
    let trust = match roots {
        Some(path) if path != "system" => Trust::File(PathBuf::from(path)),
        Some(_) => Trust::Machine,
        None if all.get_ssl_mode() == SslMode::Require => Trust::Machine,
        None => Trust::Any,
    };
    let servers = (0..count).map(|at| server(&all, at)).collect();
    Ok(Address { servers, trust })
}

/// Returns the name and the settings of one server of several.
fn server(all: &Config, at: usize) -> (String, Config) {
    let mut one = Config::new();
    let host = all.get_hosts().get(at);
    let numeric = all.get_hostaddrs().get(at);
    let mut name = numeric.map(ToString::to_string).unwrap_or_default();
    match host {
        Some(Host::Tcp(host)) => {
            one.host(host);
            name.clone_from(host);
        }
        Some(Host::Unix(path)) => {
            one.host_path(path);
            name = path.display().to_string();
        }
        None => {
            // A certificate is of the address then.
            one.host(&name);
        }
    }
    if let Some(numeric) = numeric {
        one.hostaddr(*numeric);
    }
    let ports = all.get_ports();
    if let Some(port) = ports.get(at).or_else(|| ports.first()) {
        one.port(*port);
    }
    settings(all, &mut one);
    (name, one)
}

/// Returns the settings of a server for each address that its name has now.
///
/// # Errors
/// The name is not known.
pub(super) async fn resolve(server: &Config) -> io::Result<Vec<Config>> {
    let [Host::Tcp(host)] = server.get_hosts() else {
        return Ok(vec![server.clone()]);
    };
    if !server.get_hostaddrs().is_empty() {
        return Ok(vec![server.clone()]);
    }
    // The port plays no part: the addresses are what is asked for.
    let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
    let addresses: BTreeSet<IpAddr> = found.map(|found| found.ip()).collect();
    Ok(at_addresses(server, addresses))
}

/// Returns the settings of a server for each of these addresses.
pub(super) fn at_addresses(
    server: &Config,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Vec<Config> {
    let addresses = addresses.into_iter();
    addresses
        .map(|address| {
            let mut one = server.clone();
            one.hostaddr(address);
            one
        })
        .collect()
}

/// Takes over what holds for all servers.
fn settings(all: &Config, one: &mut Config) {
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    let connect_timeout = all.get_connect_timeout();
    // A connection whose server went away without a word must end: nobody takes a request back, and nobody waits forever.
    let idle = all.get_keepalives_idle().min(KEEPALIVE);
    one.application_name(all.get_application_name().unwrap_or("svc"))
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .connect_timeout(
            connect_timeout.map_or(CONNECT_TIMEOUT, |limit| CONNECT_TIMEOUT.min(*limit)),
        )
        .tcp_user_timeout(*all.get_tcp_user_timeout().unwrap_or(&SENT_TIMEOUT))
        .keepalives(all.get_keepalives())
        .keepalives_idle(idle)
        .keepalives_interval(all.get_keepalives_interval().unwrap_or(KEEPALIVE))
        .keepalives_retries(all.get_keepalives_retries().unwrap_or(KEEPALIVE_RETRIES));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers() {
        let address = parse("postgresql://svc:secret@pg1,pg2:5433,pg3/ledger").unwrap();
        let names: Vec<_> = address.servers.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["pg1", "pg2", "pg3"]);
        let (_, second) = &address.servers[1];
        assert_eq!(second.get_hosts(), [Host::Tcp("pg2".to_owned())]);
        assert_eq!(second.get_ports(), [5433]);
        assert_eq!(second.get_user(), Some("svc"));
        assert_eq!(second.get_password(), Some(b"secret".as_slice()));
        assert_eq!(second.get_dbname(), Some("ledger"));
        let wanted = second.get_target_session_attrs();
        assert_eq!(wanted, TargetSessionAttrs::ReadWrite);
        assert_eq!(second.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
        assert_eq!(second.get_keepalives_idle(), KEEPALIVE);
        let (_, first) = &address.servers[0];
        assert_eq!(first.get_ports(), [5432]);
    }

    #[test]
    fn a_url_has_no_server_waited_for_longer_than_others_wait() {
        for (query, limit) in [("connect_timeout=9", 2), ("connect_timeout=1", 1)] {
            let address = parse(&format!("postgresql://svc@pg/svc?{query}")).unwrap();
            let (_, server) = &address.servers[0];
            let limit = Duration::from_secs(limit);
            assert_eq!(server.get_connect_timeout(), Some(&limit), "{query}");
        }
    }

    #[test]
    fn an_address_without_a_name_is_the_name() {
        let address = parse("postgresql://svc@/svc?hostaddr=10.0.0.1").unwrap();
        let (name, server) = &address.servers[0];
        assert_eq!(name, "10.0.0.1");
        assert_eq!(server.get_hosts(), [Host::Tcp("10.0.0.1".to_owned())]);
        assert_eq!(server.get_hostaddrs(), [IpAddr::from([10, 0, 0, 1])]);
    }

    #[tokio::test]
    async fn each_address_of_a_name_is_a_server() {
        let of = async |text: &str| {
            let address = parse(text).unwrap();
            let resolved = resolve(&address.servers[0].1).await.unwrap();
            let numeric = resolved.iter().map(|one| one.get_hostaddrs().to_vec());
            numeric.collect::<Vec<_>>()
        };
        let local = of("postgresql://svc@localhost/svc").await;
        assert!(!local.is_empty());
        let is_local = |of: &Vec<IpAddr>| of.len() == 1 && of[0].is_loopback();
        assert!(local.iter().all(is_local), "{local:?}");
        let known = of("postgresql://svc@pg/svc?hostaddr=10.0.0.1").await;
        assert_eq!(known, [[IpAddr::from([10, 0, 0, 1])]]);
        let socket = of("postgresql://svc@%2Frun%2Fpg/svc").await;
        assert_eq!(socket, [Vec::<IpAddr>::new()]);
    }

    #[test]
    fn a_url_says_what_is_verified() {
        for (query, trust) in [
            ("", Trust::Any),
            ("?sslmode=disable", Trust::Any),
            ("?sslmode=require", Trust::Machine),
            ("?sslmode=verify-full&connect_timeout=9", Trust::Machine),
            ("?sslmode=verify-full&sslrootcert=system", Trust::Machine),
            (
                "?sslmode=require&sslrootcert=%2Fetc%2Froot.pem",
                Trust::File("/etc/root.pem".into()),
            ),
        ] {
            let address = parse(&format!("postgresql://svc@pg/svc{query}")).unwrap();
            assert_eq!(address.trust, trust, "{query}");
        }
    }

    #[test]
    fn a_wrong_url_is_refused_without_its_password() {
        for url in [
            "host=pg user=svc password=secret",
            "postgresql:///svc?password=secret",
            "postgresql://svc:secret@pg/svc?sslmode=maybe",
            "postgresql://svc:secret@pg/svc?nonsense=1",
            "postgresql://svc:a@b?secret=c@pg/svc",
            "postgresql://svc:secret@pg1,pg2,pg3/svc?port=1,2",
        ] {
            let error = parse(url).err().unwrap();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
