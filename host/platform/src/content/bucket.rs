//! Buckets: how content's and a cluster's are opened, and an installation's claim on that of its content.
//!
//! The claim is an object with the installation's name, written where there is none. Two installations that shared a prefix would
//! delete each other's objects, and an emptied prefix or another installation's must not be taken for a new one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::prefix::PrefixStore;
use object_store::{
    BackoffConfig, Error, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, PutMode, RetryConfig,
};
use url::Url;

use super::claim::{self, OWNER_FILE};
use super::local::OPENED_FILE;
use super::requests::StoreConnector;
use super::store::digest_of_path;
use crate::config::S3Settings;
use svc_base::random::Random;

/// Retries of transient failures, the time within which the last one may be decided on, and the longest pause before it.
const RETRIES: usize = 3;
const RETRY_TIME: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Time and pause for a cluster, where clients wait: with the connector's time for a request, all retries end within eight seconds.
const SHARED_RETRY_TIME: Duration = Duration::from_secs(3);
const SHARED_MAX_PAUSE: Duration = Duration::from_millis(500);

const REFUSED_MESSAGE: &str = "the store refuses these keys: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of [s3], and that they may get, put, delete and list there";
const NO_BUCKET: &str = "there is no such bucket: make it, or check its name, the endpoint (AWS_ENDPOINT_URL) and the region (AWS_REGION)";
const FAILING_MESSAGE: &str = "the store does not answer as it should: check the endpoint (AWS_ENDPOINT_URL), the region (AWS_REGION), and, if this machine has no role of its own, that keys are set (AWS_ACCESS_KEY_ID)";

/// A bucket, restricted to the prefix of the content.
pub(super) type ContentBucket = PrefixStore<object_store::aws::AmazonS3>;

/// Opens the bucket that a URL names twice: with retries, and without them for deletions. No request is sent yet.
///
/// # Errors
/// Settings that name no store.
pub(super) fn open(
    url: &Url,
    access: &S3Settings,
    connector: &StoreConnector,
) -> anyhow::Result<[ContentBucket; 2]> {
    let retries = retry_config(RETRY_TIME, MAX_PAUSE);
    open_twice(url, access, connector, &retries)
}

/// Opens the bucket of a cluster in the same way. `connector` is one of [`StoreConnector::for_cluster`].
///
/// # Errors
/// Settings that name no store.
pub fn open_shared_bucket(
    url: &Url,
    access: &S3Settings,
    connector: &StoreConnector,
) -> anyhow::Result<[Arc<dyn ObjectStore>; 2]> {
    let retries = retry_config(SHARED_RETRY_TIME, SHARED_MAX_PAUSE);
    let [store, deleting] = open_twice(url, access, connector, &retries)?;
    Ok([Arc::new(store), Arc::new(deleting)])
}

fn retry_config(retry_timeout: Duration, max_backoff: Duration) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            max_backoff,
            ..BackoffConfig::default()
        },
        max_retries: RETRIES,
        retry_timeout,
    }
}

fn open_twice(
    url: &Url,
    access: &S3Settings,
    connector: &StoreConnector,
    retries: &RetryConfig,
) -> anyhow::Result<[ContentBucket; 2]> {
    let never = RetryConfig {
        max_retries: 0,
        ..retries.clone()
    };
    Ok([
        open_with_retries(url, access, connector, retries.clone())?,
        open_with_retries(url, access, connector, never)?,
    ])
}

fn open_with_retries(
    url: &Url,
    access: &S3Settings,
    connector: &StoreConnector,
    retries: RetryConfig,
) -> anyhow::Result<ContentBucket> {
    let (_, below) = ObjectStoreScheme::parse(url)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(url.host_str().context("the URL names no bucket")?)
        .with_http_connector(connector.clone())
        .with_retry(retries)
        // Not every store supports bulk deletion, and objects are deleted one by one.
        .with_disable_bulk_delete(true);
    for (name, value) in access.client_options() {
        builder = builder.with_config(name.parse()?, value);
    }
    Ok(PrefixStore::new(builder.build()?, below))
}

/// Claims a bucket for the installation in `data`. One that `is_known` was claimed before; another is new, or has only content
/// copied from the earlier location.
///
/// # Errors
/// A bucket of another installation, one that lost its claim, one with foreign objects, or one that does not answer.
pub(super) async fn claim_bucket(
    store: &dyn ObjectStore,
    data: &Path,
    is_known: bool,
    random: &Random,
) -> anyhow::Result<()> {
    let own = claim::installation_name(data, random)?;
    let owner = match read_owner(store).await? {
        Some(owner) => owner,
        None if is_known => bail!(
            "it is not as this installation has left it: are the bucket, the prefix and the endpoint those of before?"
        ),
        None => {
            check_is_for_content(store).await?;
            write_owner(store, &own).await?;
            let written = read_owner(store).await?;
            written.context("it does not have what was just written to it")?
        }
    };
    if owner != own.as_bytes() {
        bail!(
            "it belongs to another installation: name a bucket or a prefix of this one's own, or delete the object `{OWNER_FILE}` there, if that installation is no more"
        );
    }
    Ok(())
}

/// Claims the bucket of a cluster for the installation named `own`, unless that has claimed it already. A bucket without a claim must
/// be empty.
///
/// # Errors
/// A bucket of another installation, one with foreign objects, or one that does not answer.
pub async fn claim_shared_bucket(store: &dyn ObjectStore, own: &str) -> anyhow::Result<()> {
    let owner = match read_owner(store).await? {
        Some(owner) => owner,
        None => {
            let first = store.list(None).try_next().await.map_err(with_advice)?;
            if let Some(object) = first {
                bail!(
                    "it has objects already, such as {}: name a bucket or a prefix of the cluster's own",
                    object.location
                );
            }
            write_owner(store, own).await?;
            let written = read_owner(store).await?;
            written.context("it does not have what was just written to it")?
        }
    };
    if owner != own.as_bytes() {
        bail!(
            "it belongs to another installation: name a bucket or a prefix of this cluster's own"
        );
    }
    Ok(())
}

/// Reads the name of the installation that has claimed the bucket of a cluster, if one has.
///
/// # Errors
/// A bucket that does not answer.
pub async fn shared_bucket_owner(store: &dyn ObjectStore) -> anyhow::Result<Option<String>> {
    let owner = read_owner(store).await?;
    Ok(owner.map(|owner| String::from_utf8_lossy(&owner).into_owned()))
}

/// Reads the name of the installation that a bucket belongs to, if there is one.
async fn read_owner(store: &dyn ObjectStore) -> anyhow::Result<Option<bytes::Bytes>> {
    let found = async { store.get(&OWNER_FILE.into()).await?.bytes().await };
    match found.await {
        Ok(owner) => Ok(Some(owner)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(with_advice(error)),
    }
}

/// Writes the name of the installation, unless another one has written its own first.
async fn write_owner(store: &dyn ObjectStore, own: &str) -> anyhow::Result<()> {
    let path = OWNER_FILE.into();
    let name = || own.to_owned().into();
    let create = || store.put_opts(&path, name(), PutMode::Create.into());
    let mut put = create().await;
    if matches!(put, Err(Error::Generic { .. })) {
        // The library does not retry conditional requests. If the first has arrived, the second finds the object.
        put = create().await;
    }
    match put {
        Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
        // Some stores do not support the condition and say so. Then the read afterwards decides.
        Err(error) if error.to_string().contains("NotImplemented") => {
            let put = store.put(&path, name()).await;
            put.map(|_| ()).map_err(with_advice)
        }
        Err(error) => Err(with_advice(error)),
    }
}

/// Refuses a bucket with foreign objects.
async fn check_is_for_content(store: &dyn ObjectStore) -> anyhow::Result<()> {
    let mut objects = store.list(None).boxed();
    while let Some(object) = objects.try_next().await.map_err(with_advice)? {
        let name = object.location.as_ref();
        if name != OPENED_FILE && digest_of_path(name).is_none() {
            bail!("it has other objects, such as {name}: name a prefix for content alone");
        }
    }
    Ok(())
}

/// Adds to an error what to do about it.
#[allow(clippy::needless_pass_by_value, reason = "of `map_err`")]
fn with_advice(error: Error) -> anyhow::Error {
    // The text contains those of its causes: where a listing fails, it is the only information.
    let told = error.to_string();
    let advice = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => REFUSED_MESSAGE,
        Error::NotFound { .. } => NO_BUCKET,
        _ if told.contains("403 Forbidden") => REFUSED_MESSAGE,
        _ if told.contains("NoSuchBucket") => NO_BUCKET,
        _ => FAILING_MESSAGE,
    };
    anyhow!(told).context(advice)
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn a_bucket_is_one_installations_and_for_content_alone() {
        let root = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| root.path().join(name));
        for data in [&one, &other] {
            std::fs::create_dir(data).unwrap();
        }
        let store = InMemory::new();
        let take = async |data: &Path, is_known| {
            let random = Random::system();
            let taken = claim_bucket(&store, data, is_known, &random).await;
            taken.map_err(|error| error.to_string())
        };
        let refused = async |data: &Path, is_known, says: &str| {
            let error = take(data, is_known).await.unwrap_err();
            assert!(error.contains(says), "{error}");
        };
        refused(&one, true, "not as this installation has left it").await;
        for is_known in [false, true] {
            take(&one, is_known).await.unwrap();
            refused(&other, is_known, "belongs to another installation").await;
        }
        // Only objects that were copied from the data directory are accepted.
        store.delete(&OWNER_FILE.into()).await.unwrap();
        let object = format!("0f/{}", "a".repeat(62));
        for name in [OPENED_FILE, &object] {
            store.put(&name.into(), "x".into()).await.unwrap();
        }
        take(&other, false).await.unwrap();
        store.delete(&OWNER_FILE.into()).await.unwrap();
        store.put(&"letters".into(), "x".into()).await.unwrap();
        refused(&one, false, "such as letters").await;
        assert!(store.get(&OWNER_FILE.into()).await.is_err());
    }
}
