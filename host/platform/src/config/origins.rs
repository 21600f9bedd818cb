//! Parsing of origins and hosts that operators write.

use anyhow::bail;
use url::Url;

/// Returns the host of a URL, with its port unless that is the scheme's default.
pub fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Checks that an http or https URL is an origin without a path, and returns it without a trailing slash.
pub(super) fn check_origin(name: &str, url: &Url) -> anyhow::Result<String> {
    let bare = url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !bare || !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        bail!("{name} must be an origin such as https://example.com, without a path: {url}");
    }
    Ok(format!("{}://{}", url.scheme(), host_and_port(url)))
}

/// Checks that the API host and the sites host have one scheme. Whether cookies are `Secure`, and which `Origin` a page has, follow from
/// it: on a host of the other scheme browsers would drop the cookies, and calls of pages would be refused.
pub(super) fn check_schemes(base: &Url, sites: &Url) -> anyhow::Result<()> {
    if base.scheme() != sites.scheme() {
        let (base, sites) = (base.as_str(), sites.as_str());
        bail!(
            "base_url and sites_url must have the same scheme, so that sign-in and payments work on both: set both to https. They are {base} and {sites}"
        );
    }
    Ok(())
}

/// Checks that a text is a host with an optional port, and returns it in lower case.
pub(super) fn check_host(name: &str, text: &str) -> anyhow::Result<String> {
    let host = text.to_ascii_lowercase();
    // A scheme without a default port, so that the port stays.
    let url = Url::parse(&format!("svc://{host}"));
    if !url.is_ok_and(|url| url.authority() == host && !host.contains('@') && !host.is_empty()) {
        bail!(
            "{name} must be a host such as pages.example.com, without a scheme or a path: {text:?}"
        );
    }
    Ok(host)
}
