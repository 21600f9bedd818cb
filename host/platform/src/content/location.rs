//! Location of an installation's content: a directory below its data, unless `content_url` names another store.
//!
//! Another location is recorded in a file of the data directory: for commands that have no settings, and for a start with other
//! settings than the one before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use object_store::prefix::PrefixStore;
use object_store::{ObjectStoreScheme, parse_url};
use url::Url;

use super::claim::ContentClaim;
use super::requests::StoreConnector;
use super::{ContentStore, bucket};
use crate::config::S3Settings;
use svc_base::disk;
use svc_base::random::Random;

/// Default directory of content in the data directory.
const CONTENT_DIR: &str = "content";
/// File that records another location.
const URL_FILE: &str = "content.url";

/// Location of an installation's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLocation {
    data: PathBuf,
    /// Store outside of the data directory.
    url: Option<Url>,
}

impl ContentLocation {
    /// Returns the location of a server's settings.
    pub fn new(data: &Path, url: Option<&Url>) -> Self {
        Self {
            data: data.to_owned(),
            url: url.cloned(),
        }
    }

    /// Returns the location that the last start has recorded.
    ///
    /// # Errors
    /// The disk's, or a record that is not a URL.
    pub fn read_recorded(data: &Path) -> anyhow::Result<Self> {
        let path = data.join(URL_FILE);
        let url = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            text => Some(text?.parse()),
        };
        let url = url.transpose();
        Ok(Self {
            data: data.to_owned(),
            url: url.with_context(|| format!("in {}", path.display()))?,
        })
    }

    /// Records the location for commands and for later starts, durably.
    ///
    /// # Errors
    /// The disk's.
    pub fn record(&self) -> io::Result<()> {
        let data = disk::open_directory(&self.data)?;
        match &self.url {
            Some(url) => disk::replace_file(&data, URL_FILE, url.as_str().as_bytes()),
            None => disk::remove_file(&data, URL_FILE),
        }
    }

    /// Whether stored content survives the process: not in memory.
    pub fn is_durable(&self) -> bool {
        let url = self.url.as_ref();
        url.is_none_or(|url| !matches!(scheme(url), Some(ObjectStoreScheme::Memory)))
    }

    /// Returns the directory, if the location is one on this machine.
    pub fn directory(&self) -> Option<PathBuf> {
        match &self.url {
            None => Some(self.data.join(CONTENT_DIR)),
            Some(url) if scheme(url) == Some(ObjectStoreScheme::Local) => url.to_file_path().ok(),
            Some(_) => None,
        }
    }

    /// Returns the directory, for a command that needs one.
    ///
    /// # Errors
    /// When the location is not a directory.
    pub fn require_directory(&self) -> anyhow::Result<PathBuf> {
        match self.directory() {
            Some(directory) => Ok(directory),
            None if self.is_durable() => bail!(
                "this needs content in a directory, and this installation has it {self}, which only its server reads: `svc backup` and `svc check` work while that runs"
            ),
            None => bail!("this needs content in a directory, and this installation has it {self}"),
        }
    }

    /// Opens the store for the server that owns it and whose content was at `before`. A location outside of the data is claimed; a
    /// bucket needs `access`.
    ///
    /// # Errors
    /// A store that cannot be opened, and what [`ContentClaim::take`] and [`bucket::claim`] refuse.
    pub async fn open(
        &self,
        before: &Self,
        access: Option<&S3Settings>,
        connector: &StoreConnector,
        random: &Random,
    ) -> anyhow::Result<ContentStore> {
        let Some(url) = &self.url else {
            return ContentStore::open(&self.data.join(CONTENT_DIR));
        };
        let is_known = self == before;
        let opened = if let Some(directory) = self.directory() {
            let claimed = ContentClaim::take(&self.data, &directory, is_known, random);
            claimed.and_then(|claim| ContentStore::open_claimed(&directory, claim))
        } else if is_bucket(url) {
            let access = access.context("there is no access to it")?;
            let [store, deleting] = bucket::open(url, access, connector)?;
            let claimed = bucket::claim_bucket(&store, &self.data, is_known, random).await;
            claimed.map(|()| ContentStore::remote(Arc::new(store), Arc::new(deleting)))
        } else {
            let (store, below) = parse_url(url)?;
            Ok(ContentStore::from_store(Arc::new(PrefixStore::new(
                store, below,
            ))))
        };
        opened.with_context(|| format!("content_url: opening what is {self}"))
    }
}

fn is_bucket(url: &Url) -> bool {
    url.scheme() == "s3"
}

impl std::fmt::Display for ContentLocation {
    /// Leaves out the URL itself, which may hold a credential.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.directory(), &self.url) {
            (Some(directory), _) => write!(f, "in {}", directory.display()),
            (None, Some(url)) if is_bucket(url) => {
                write!(
                    f,
                    "in s3://{}{}",
                    url.host_str().unwrap_or_default(),
                    url.path()
                )
            }
            (None, Some(url)) => write!(f, "behind `{}:`", url.scheme()),
            (None, None) => f.write_str("nowhere"),
        }
    }
}

fn scheme(url: &Url) -> Option<ObjectStoreScheme> {
    ObjectStoreScheme::parse(url).ok().map(|(scheme, _)| scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_again_until_another_is_noted() {
        let data = tempfile::tempdir().unwrap();
        let noted = || ContentLocation::read_recorded(data.path()).unwrap();
        assert_eq!(noted().directory().unwrap(), data.path().join("content"));
        for (url, directory) in [
            ("file:///srv/content", Some("/srv/content")),
            ("memory:///", None),
            ("s3://bucket/prefix", None),
        ] {
            let place = ContentLocation::new(data.path(), Some(&url.parse().unwrap()));
            place.record().unwrap();
            assert_eq!(noted(), place);
            assert_eq!(place.directory(), directory.map(PathBuf::from));
            assert_eq!(place.require_directory().is_ok(), directory.is_some());
            assert_eq!(place.is_durable(), !url.starts_with("memory:"));
        }
        let below = ContentLocation::new(data.path(), None);
        below.record().unwrap();
        assert_eq!(noted(), below);
        assert!(below.is_durable());
        fs::write(data.path().join(URL_FILE), "elsewhere").unwrap();
        assert!(ContentLocation::read_recorded(data.path()).is_err());
    }
}
