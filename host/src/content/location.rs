//! Where an installation keeps its content: in a directory below its data, unless `content_url` names another store.
//!
//! If it is elsewhere, a file in the data directory says where: for commands that know no settings, and for a start whose settings
//! are others than those of the start before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use object_store::prefix::PrefixStore;
use object_store::{ObjectStoreScheme, parse_url};
use url::Url;

use super::claim::Claim;
use super::requests::StoreConnector;
use super::{Content, bucket};
use crate::config::S3;
use svc_base::disk;
use svc_base::random::Random;

/// The directory of content below the data.
const CONTENT_DIR: &str = "content";
/// File that says where content is elsewhere.
const URL_FILE: &str = "content.url";

/// Place of an installation's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLocation {
    data: PathBuf,
    /// Store that is not below the data.
    url: Option<Url>,
}

impl ContentLocation {
    /// The place by the settings of a server.
    pub fn new(data: &Path, url: Option<&Url>) -> Self {
        Self {
            data: data.to_owned(),
            url: url.cloned(),
        }
    }

    /// The place by what the last start has noted.
    ///
    /// # Errors
    /// The disk's, or a note that is no URL.
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

    /// Notes the place for commands and for later starts, durably.
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

    /// Whether what was stored here before is sure to be here still: not in memory.
    pub fn is_durable(&self) -> bool {
        let url = self.url.as_ref();
        url.is_none_or(|url| !matches!(scheme(url), Some(ObjectStoreScheme::Memory)))
    }

    /// The directory of this machine that it is, if it is one.
    pub fn directory(&self) -> Option<PathBuf> {
        match &self.url {
            None => Some(self.data.join(CONTENT_DIR)),
            Some(url) if scheme(url) == Some(ObjectStoreScheme::Local) => url.to_file_path().ok(),
            Some(_) => None,
        }
    }

    /// Returns the directory of this machine that it is, for a command that needs one.
    ///
    /// # Errors
    /// A store that is no directory.
    pub fn require_directory(&self) -> anyhow::Result<PathBuf> {
        match self.directory() {
            Some(directory) => Ok(directory),
            None if self.is_durable() => bail!(
                "this needs content in a directory, and this installation has it {self}, which only its server reads: `svc backup` and `svc check` work while that runs"
            ),
            None => bail!("this needs content in a directory, and this installation has it {self}"),
        }
    }

    /// Opens it, for the server that it belongs to and whose content was at `before`. What lies outside of the data is claimed; a
    /// bucket needs `access`.
    ///
    /// # Errors
    /// A store that cannot be opened, and what [`Claim::take`] and [`bucket::claim`] refuse.
    pub async fn open(
        &self,
        before: &Self,
        access: Option<&S3>,
        connector: &StoreConnector,
        random: &Random,
    ) -> anyhow::Result<Content> {
        let Some(url) = &self.url else {
            return Content::open(&self.data.join(CONTENT_DIR));
        };
        let is_known = self == before;
        let opened = if let Some(directory) = self.directory() {
            let claimed = Claim::take(&self.data, &directory, is_known, random);
            claimed.and_then(|claim| Content::open_claimed(&directory, claim))
        } else if is_bucket(url) {
            let access = access.context("there is no access to it")?;
            let [store, deleting] = bucket::open(url, access, connector)?;
            let claimed = bucket::claim(&store, &self.data, is_known, random).await;
            claimed.map(|()| Content::remote(Arc::new(store), Arc::new(deleting)))
        } else {
            let (store, below) = parse_url(url)?;
            Ok(Content::from_store(Arc::new(PrefixStore::new(
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
    /// Never the URL itself, which may hold a credential.
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
