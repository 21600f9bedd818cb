//! The contact of the operator, for people.

use anyhow::bail;
use url::Url;

/// Parses a contact: a URL, or an e-mail address, which becomes a `mailto:` URL.
pub(super) fn parse_contact(text: &str) -> anyhow::Result<String> {
    let is_url = Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "https" | "http" | "mailto" | "tel"));
    let is_line = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    match text.split_once('@') {
        _ if is_url && is_line => Ok(text.to_owned()),
        Some((name, domain)) if is_line && !name.is_empty() && domain.contains('.') => {
            Ok(format!("mailto:{text}"))
        }
        _ => {
            bail!("contact must be an e-mail address such as abuse@example.com, or a URL: {text:?}")
        }
    }
}
