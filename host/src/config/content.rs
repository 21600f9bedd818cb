//! The store of content, by its URL.

use anyhow::bail;
use object_store::ObjectStoreScheme;
use url::Url;

/// Checks that this program has the store that a URL names.
///
/// # Errors
/// The text for the operator, without the URL, which may hold a credential.
pub(super) fn checked(url: Url) -> anyhow::Result<Url> {
    let taken = match ObjectStoreScheme::parse(&url).map(|(scheme, _)| scheme) {
        Ok(ObjectStoreScheme::Local) => url.to_file_path().is_ok_and(|path| path.is_absolute()),
        Ok(ObjectStoreScheme::Memory) => true,
        _ => false,
    };
    let plain = url.query().is_none() && url.fragment().is_none();
    if !taken || !plain {
        bail!(
            "content_url: this program has no store for such a `{}:` URL: name a directory as file:///srv/content, or memory:/// to try things out",
            url.scheme()
        );
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stores_that_are_there_are_taken() {
        for (url, taken) in [
            ("file:///srv/content", true),
            ("memory:///", true),
            ("memory:/below", true),
            ("s3://bucket/secret", false),
            ("https://user:secret@bucket.s3.amazonaws.com/", false),
            ("file://host/secret", false),
            ("memory:///?secret", false),
            ("ftp://secret/", false),
        ] {
            match checked(url.parse().unwrap()) {
                Ok(_) => assert!(taken, "{url}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!taken && !error.contains("secret"), "{url}: {error}");
                }
            }
        }
    }
}
