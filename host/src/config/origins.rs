//! Origins and hosts as operators write them.

use anyhow::bail;
use url::Url;

/// Host and, where it is not the scheme's own, port.
pub fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// An http or https URL that is an origin and nothing more.
pub(super) fn origin(name: &str, url: &Url) -> anyhow::Result<String> {
    let bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty();
    if !bare || !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        bail!("{name} must be an origin such as https://example.com, without a path: {url}");
    }
    Ok(format!("{}://{}", url.scheme(), authority(url)))
}

/// A host, with its port where it has one, and nothing more.
pub(super) fn host(name: &str, text: &str) -> anyhow::Result<String> {
    let host = text.to_ascii_lowercase();
    // A scheme of which no port is left out.
    let url = Url::parse(&format!("svc://{host}"));
    if !url.is_ok_and(|url| url.authority() == host && !host.contains('@') && !host.is_empty()) {
        bail!(
            "{name} must be a host such as pages.example.com, without a scheme or a path: {text:?}"
        );
    }
    Ok(host)
}
