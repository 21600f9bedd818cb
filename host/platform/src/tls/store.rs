//! Files of an authority, in `data/tls`: the account, certificates with their keys, and the budget.
//!
//! Each authority has a directory of its own, with one for domains in it. Files are readable by their owner alone, and replaced
//! atomically. Backups leave them out: certificates can be ordered again, and a key in two places is no longer this server's secret.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::pair::CertificatePair;

/// Directory of all authorities in the data directory.
const TLS_DIRECTORY: &str = "tls";
/// Directory of the domains of projects in that of an authority.
const DOMAINS_DIRECTORY: &str = "domains";
/// File of the account.
const ACCOUNT_FILE: &str = "account.json";
/// File of the budget.
const BUDGET_FILE: &str = "budget.json";
/// Extension of certificates' files.
const PEM_EXTENSION: &str = "pem";

/// The directory of one authority, or that of its domains.
#[derive(Clone, Debug)]
pub(super) struct AuthorityDirectory(PathBuf);

impl AuthorityDirectory {
    /// Opens the directory of an authority, made where it is missing.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn open(data: &Path, authority: &Url) -> io::Result<Self> {
        let digest = ring::digest::digest(&ring::digest::SHA256, authority.as_str().as_bytes());
        let digest: String = digest.as_ref()[..4]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let host = authority.host_str().unwrap_or_default().replace(':', "-");
        let path = data.join(TLS_DIRECTORY).join(format!("{host}-{digest}"));
        Self::make(path)
    }

    /// Opens the directory of domains' certificates, made where it is missing. It is apart, because a name alone does not say whether it
    /// was a domain or a host of other settings, whose certificates are kept.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn for_domains(&self) -> io::Result<Self> {
        Self::make(self.0.join(DOMAINS_DIRECTORY))
    }

    fn make(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        Ok(Self(path))
    }

    /// Reads all usable certificates, each with its name; logs the others. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn pairs(&self) -> io::Result<Vec<(String, CertificatePair)>> {
        let mut pairs = Vec::new();
        for name in self.names()? {
            if let Some(pair) = self.pair(&name)? {
                pairs.push((name, pair));
            }
        }
        Ok(pairs)
    }

    /// Lists the names that have a file. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let is_pem = path.extension().is_some_and(|end| end == PEM_EXTENSION);
            names.extend(name.filter(|_| is_pem).map(str::to_owned));
        }
        Ok(names)
    }

    /// Reads the certificate of a name, if there is one; logs one that cannot be used. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn pair(&self, name: &str) -> io::Result<Option<CertificatePair>> {
        let path = self.0.join(format!("{name}.{PEM_EXTENSION}"));
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        match CertificatePair::read(&text, &text) {
            Ok(pair) => Ok(Some(pair)),
            Err(error) => {
                tracing::warn!(
                    path = %path.display(), %error,
                    "a certificate cannot be used and is asked for anew"
                );
                Ok(None)
            }
        }
    }

    /// Stores the certificate and key of a name. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn put(&self, name: &str, pem: &str) -> io::Result<()> {
        self.write(&format!("{name}.{PEM_EXTENSION}"), pem.as_bytes())
    }

    /// Deletes the certificate of a name. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.remove_file(&format!("{name}.{PEM_EXTENSION}"))
    }

    /// Reads the account, if there is one. Blocks.
    ///
    /// # Errors
    /// The disk's, and a file that is damaged.
    pub(super) fn account<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.read(ACCOUNT_FILE)
    }

    /// Stores the account. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn put_account(&self, account: &impl Serialize) -> io::Result<()> {
        self.write(ACCOUNT_FILE, &serde_json::to_vec(account)?)
    }

    /// Deletes the account. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove_account(&self) -> io::Result<()> {
        self.remove_file(ACCOUNT_FILE)
    }

    /// Reads the budget, if there is one. Blocks.
    ///
    /// # Errors
    /// The disk's, and a file that is damaged.
    pub(super) fn budget<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.read(BUDGET_FILE)
    }

    /// Stores the budget. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn put_budget(&self, budget: &impl Serialize) -> io::Result<()> {
        self.write(BUDGET_FILE, &serde_json::to_vec(budget)?)
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.0.join(name);
        match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|_| {
                let what = format!("{} is damaged: remove it, and start again", path.display());
                io::Error::new(io::ErrorKind::InvalidData, what)
            }),
        }
    }

    /// Replaces a file atomically and durably. The file has mode 0600.
    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(name))
            .map_err(|error| error.error)?;
        File::open(&self.0)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_authority_has_a_directory_of_its_own_closed_to_others() {
        let data = tempfile::tempdir().unwrap();
        let open =
            |url: &str| AuthorityDirectory::open(data.path(), &Url::parse(url).unwrap()).unwrap();
        let (one, other) = (open("https://a.example/one"), open("https://a.example/two"));
        let made = rcgen::generate_simple_self_signed(vec!["a.example".into()]).unwrap();
        let pem = format!("{}{}", made.signing_key.serialize_pem(), made.cert.pem());
        one.put("a.example", &pem).unwrap();
        one.put("b.example", "nothing").unwrap();
        one.put_account(&"secret").unwrap();
        let names: Vec<String> = one.pairs().unwrap().into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["a.example"], "what is damaged is asked for anew");
        assert!(other.pairs().unwrap().is_empty());
        assert_eq!(other.account::<String>().unwrap(), None);
        assert_eq!(one.account::<String>().unwrap().as_deref(), Some("secret"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&data.path().join(TLS_DIRECTORY)), 0o700);
        assert_eq!(mode(&one.0), 0o700);
        for entry in std::fs::read_dir(&one.0).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        std::fs::write(one.0.join(BUDGET_FILE), "{").unwrap();
        let error = one.budget::<String>().unwrap_err().to_string();
        assert!(error.contains("budget.json"), "{error}");
        one.remove("a.example").unwrap();
        one.remove("a.example").unwrap();
        assert!(one.pairs().unwrap().is_empty());
        let domains = one.for_domains().unwrap();
        domains.put("www.shop.com", &pem).unwrap();
        assert_eq!(mode(&domains.0), 0o700);
        assert_eq!(domains.names().unwrap(), ["www.shop.com"]);
        assert!(domains.pair("www.shop.com").unwrap().is_some());
        assert!(domains.pair("none.shop.com").unwrap().is_none());
        let own = one.names().unwrap();
        assert_eq!(own, ["b.example"], "domains are apart");
    }
}
