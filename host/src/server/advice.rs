//! The log at a start: the server's addresses and settings, and warnings about unsafe ones.

use std::net::SocketAddr;

use url::Url;

use crate::app::App;
use crate::config::Config;
use crate::content::ContentLocation;
use crate::guests::WorldFolder;
use crate::operators::warn_if_origin_is_shared;
use svc_sandbox::World;

/// Logs the settings of the server, and warns of unsafe ones.
pub(super) async fn log_startup(app: &App, ops: Option<SocketAddr>) -> anyhow::Result<()> {
    let config = &app.config;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %config.listen,
        https = config.https,
        ops_address = ops.map(tracing::field::display),
        base_url = config.base_url,
        sites_url = config.sites_url,
        sites_domain = config.sites_domain,
        console_url = config.console_url,
        landing_host = config.landing_host,
        data = %absolute_path(&config.data),
        cache = %absolute_path(&config.cache),
        guests = %absolute_path(&config.guests),
        render = chosen_guest(config, World::Render),
        gate = chosen_guest(config, World::Gate),
        access_log = config.access_log,
        "serving"
    );
    for warning in warnings(config, ops) {
        tracing::warn!("{warning}");
    }
    warn_if_origin_is_shared(app).await
}

/// Returns an absolute path as a text.
fn absolute_path(path: &std::path::Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

/// Returns the digest of the guest that is chosen for a world.
fn chosen_guest(config: &Config, world: World) -> String {
    match WorldFolder::new(&config.guests, world).read() {
        Ok(record) => record
            .current_guest()
            .map_or_else(|| "built in".to_owned(), |top| top.digest.to_string()),
        Err(_) => "unknown".to_owned(),
    }
}

/// Lists the settings that are unsafe.
fn warnings(config: &Config, ops: Option<SocketAddr>) -> Vec<String> {
    let mut warnings = Vec::new();
    let url = Url::parse(&config.base_url).ok();
    let host = url.as_ref().and_then(Url::host);
    let local = host.as_ref().is_some_and(is_local);
    if local && !is_loopback(config.listen) {
        warnings.push(format!(
            "`listen` is {}, which other machines reach, but `base_url` is {}: the links that they are given lead to themselves; set `base_url` to the address that people use",
            config.listen, config.base_url
        ));
    }
    if let Some(ops) = ops.filter(|ops| !is_loopback(*ops)) {
        warnings.push(format!(
            "`ops_listen` is {ops}, which other machines reach, and asks nobody who they are: keep it on an address that only you reach"
        ));
    }
    if !ContentLocation::new(&config.data, config.content_url.as_ref()).is_durable() {
        warnings.push(
            "`content_url` is a store in memory: what is published ends with this process"
                .to_owned(),
        );
    }
    warnings
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn is_local(host: &url::Host<&str>) -> bool {
    match host {
        url::Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        url::Host::Ipv4(ip) => ip.is_loopback(),
        url::Host::Ipv6(ip) => ip.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn what_is_unsafe_is_said() {
        let public: SocketAddr = "0.0.0.0:80".parse().unwrap();
        let local: SocketAddr = "127.0.0.1:80".parse().unwrap();
        for (listen, base_url, ops, said) in [
            (local, "http://localhost", None, &[][..]),
            (local, "https://share.example.com", Some(local), &[]),
            (public, "https://share.example.com", None, &[]),
            (public, "http://localhost", None, &["base_url"]),
            (
                public,
                "http://[::1]:80",
                Some(public),
                &["base_url", "ops_listen"],
            ),
            (local, "http://localhost", Some(public), &["ops_listen"]),
        ] {
            let toml = format!("cache = '/c'\nbase_url = '{base_url}'");
            let settings: Settings = toml::from_str(&toml).unwrap();
            let warnings = warnings(&settings.resolve(listen).unwrap(), ops);
            assert_eq!(warnings.len(), said.len(), "{warnings:?}");
            for (warning, said) in warnings.iter().zip(said) {
                assert!(warning.contains(said), "{warning}");
            }
        }
    }
}
