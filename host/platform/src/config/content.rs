//! Stores of content and of a cluster's bytes, by their URLs.

use anyhow::bail;
use object_store::ObjectStoreScheme;
use url::Url;

use super::S3Settings;

/// Checks that this program has the store that a URL names.
///
/// # Errors
/// A text for the operator, without the URL, which may hold a credential.
pub(super) fn check_content_url(url: Url) -> anyhow::Result<Url> {
    check_store("content_url", url)
}

/// Checks that a URL names a store of bytes that several machines share.
///
/// # Errors
/// A text for the operator, without the URL, which may hold a credential.
pub(super) fn check_bucket_url(url: Url) -> anyhow::Result<Url> {
    let is_shared = match url.scheme() {
        "s3" => true,
        "file" => url.to_file_path().is_ok(),
        _ => false,
    };
    if !is_shared {
        bail!(
            "cluster.bucket must be a store that all nodes reach: name a bucket as s3://bucket/prefix, or a shared directory as file:///srv/shared"
        );
    }
    check_store("cluster.bucket", url)
}

/// Checks a URL that a command names for the bucket of a cluster. Returns it with the access to it that the environment gives.
///
/// # Errors
/// When either cannot be used.
pub fn resolve_bucket(url: Url) -> anyhow::Result<(Url, Option<S3Settings>)> {
    let url = check_bucket_url(url)?;
    let access = S3Settings::from_settings(Some(&url), None)?;
    Ok((url, access))
}

fn check_store(setting: &str, mut url: Url) -> anyhow::Result<Url> {
    let plain = url.query().is_none() && url.fragment().is_none();
    if url.scheme() == "s3" {
        if !(plain && is_bucket(&url)) {
            bail!(
                "{setting}: a bucket is named as s3://bucket, or s3://bucket/prefix, and nothing else is in that URL: keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the endpoint is AWS_ENDPOINT_URL, or they stand in [s3]"
            );
        }
        // Normalized, so that a later start compares equal URLs.
        let prefix = url.path().trim_matches('/').to_owned();
        url.set_path(&prefix);
        return Ok(url);
    }
    let taken = match ObjectStoreScheme::parse(&url).map(|(scheme, _)| scheme) {
        Ok(ObjectStoreScheme::Local) => url.to_file_path().is_ok_and(|path| path.is_absolute()),
        Ok(ObjectStoreScheme::Memory) => true,
        _ => false,
    };
    if !taken || !plain {
        bail!(
            "{setting}: this program has no store for such a `{}:` URL: name a directory as file:///srv/content, a bucket as s3://bucket/prefix, or memory:/// to try things out",
            url.scheme()
        );
    }
    Ok(url)
}

/// Whether a URL names a bucket, with a prefix or without, and no more.
fn is_bucket(url: &Url) -> bool {
    let named = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    let bucket = url.host_str().unwrap_or_default();
    let alone = url.username().is_empty() && url.password().is_none() && url.port().is_none();
    alone
        && (3..=63).contains(&bucket.len())
        && bucket.bytes().all(named)
        && ObjectStoreScheme::parse(url).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_one_name() {
        for (url, name) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            ("s3://bucket/a/b", "s3://bucket/a/b"),
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ] {
            let checked = check_content_url(url.parse().unwrap()).unwrap();
            assert_eq!(checked.as_str(), name);
        }
    }

    #[test]
    fn only_stores_that_are_there_are_taken() {
        for (url, taken) in [
            ("file:///srv/content", true),
            ("memory:///", true),
            ("memory:/below", true),
            ("s3://bucket", true),
            ("s3://bucket/", true),
            ("s3://bucket.of-mine/a/prefix/", true),
            ("s3://secret@bucket/", false),
            ("s3://user:secret@bucket/", false),
            ("s3://bucket:9000/secret", false),
            ("s3://bucket/a?X-Amz-Signature=secret", false),
            ("s3://bucket/a#secret", false),
            ("s3://bucket//secret", false),
            ("s3:///secret", false),
            ("s3:secret", false),
            ("s3a://bucket/secret", false),
            ("https://user:secret@bucket.s3.amazonaws.com/", false),
            ("file://host/secret", false),
            ("memory:///?secret", false),
            ("ftp://secret/", false),
        ] {
            match check_content_url(url.parse().unwrap()) {
                Ok(_) => assert!(taken, "{url}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!taken && !error.contains("secret"), "{url}: {error}");
                }
            }
        }
    }
}
