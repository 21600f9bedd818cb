//! Manifest of a site: its files by their paths, and its options.
//!
//! It has two forms. The canonical one (RFC 8785) names each file's SHA-256 and nothing else: its own digest is that of the site's
//! content. The other one is what serving needs, too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use svc_sandbox::SiteRules as JudgedRules;
use utoipa::ToSchema;

use super::SiteRules;
use crate::content::Digest;

/// A file of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Digest of its bytes.
    pub digest: Digest,
    /// Length of it.
    pub bytes: u64,
    /// List of the objects of a large file.
    pub list: Option<Digest>,
}

/// Reads a value that may be null, for `#[serde(deserialize_with)]`.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Options of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SiteOptions {
    /// File that answers a navigation to a path without an ending where no file is: the page of an app that routes by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Paths whose files never change: each is `/` and a path, in which a `*` stands for any characters, as in `/assets/*`.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schema(max_items = 100, nullable)]
    pub immutable: Vec<String>,
}

/// Number and length of a site's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteSize {
    /// How many there are.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Files and options of a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteManifest {
    /// Files by their paths.
    pub files: BTreeMap<String, SiteFile>,
    /// Options of the site.
    pub options: SiteOptions,
    /// Rules that a guest has read in the files.
    pub rules: SiteRules,
    /// Paths of files that the revision has deleted by name: those of earlier revisions are served to nobody.
    pub deleted: BTreeSet<String>,
}

/// Stored form of a manifest.
#[derive(Serialize, Deserialize)]
struct StoredManifest {
    files: Vec<(String, String, u64, Option<String>)>,
    options: SiteOptions,
    #[serde(default, skip_serializing_if = "JudgedRules::is_empty")]
    rules: JudgedRules,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    deleted: BTreeSet<String>,
}

impl SiteManifest {
    /// Returns the canonical form: members in the order of their UTF-16 code units, without spaces.
    ///
    /// # Errors
    /// Never in practice: it is plain data.
    pub fn to_canonical(&self) -> serde_json::Result<Vec<u8>> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        let mut text = String::from("{\"files\":{");
        for (number, (path, file)) in files.into_iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(path)?);
            text.push_str(&format!(":\"{}\"", file.digest));
        }
        text.push_str("},\"options\":");
        text.push_str(&serde_json::to_string(&self.options)?);
        text.push('}');
        Ok(text.into_bytes())
    }

    /// Lists the digests that a canonical form names; `None` if it is malformed.
    pub fn digests_of_canonical(form: &[u8]) -> Option<Vec<Digest>> {
        #[derive(Deserialize)]
        struct CanonicalFiles {
            files: BTreeMap<String, String>,
        }
        let form: CanonicalFiles = serde_json::from_slice(form).ok()?;
        let digests = form.files.values().map(|digest| Digest::from_hex(digest));
        digests.collect()
    }

    /// Returns the form that is served from.
    ///
    /// # Errors
    /// Never in practice: it is plain data.
    pub fn to_object(&self) -> serde_json::Result<Vec<u8>> {
        let files = self.files.iter().map(|(path, file)| {
            let list = file.list.map(|list| list.to_string());
            (path.clone(), file.digest.to_string(), file.bytes, list)
        });
        serde_json::to_vec(&StoredManifest {
            files: files.collect(),
            options: self.options.clone(),
            rules: self.rules.judged().clone(),
            deleted: self.deleted.clone(),
        })
    }

    /// Reads the form that is served from; `None` if it is malformed.
    pub fn from_object(object: &[u8]) -> Option<Self> {
        let stored: StoredManifest = serde_json::from_slice(object).ok()?;
        let files = stored.files.into_iter().map(|(path, digest, bytes, list)| {
            let list = match list {
                Some(list) => Some(Digest::from_hex(&list)?),
                None => None,
            };
            let digest = Digest::from_hex(&digest)?;
            Some((
                path,
                SiteFile {
                    digest,
                    bytes,
                    list,
                },
            ))
        });
        Some(Self {
            files: files.collect::<Option<_>>()?,
            options: stored.options,
            rules: SiteRules::new(stored.rules)?,
            deleted: stored.deleted,
        })
    }

    /// Returns the number of files, and their length.
    pub fn size(&self) -> SiteSize {
        SiteSize {
            files: self.files.len() as u64,
            bytes: self
                .files
                .values()
                .fold(0, |all, file| all.saturating_add(file.bytes)),
        }
    }

    /// Returns about how many bytes this takes in memory.
    pub fn memory(&self) -> u64 {
        let entry = size_of::<(String, SiteFile)>() as u64;
        let files = self.files.keys().map(|path| path.len() as u64 + entry);
        let names = self.deleted.iter().chain(&self.options.immutable);
        let names = names.map(|name| name.len() as u64 + size_of::<String>() as u64);
        files.chain(names).sum::<u64>() + self.rules.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(paths: &[&str]) -> SiteManifest {
        let file = |path: &&str| {
            let file = SiteFile {
                digest: Digest::of(path.as_bytes()),
                bytes: 3,
                list: path.contains("large").then(|| Digest::of(b"list")),
            };
            ((*path).to_owned(), file)
        };
        SiteManifest {
            files: paths.iter().map(file).collect(),
            ..SiteManifest::default()
        }
    }

    #[test]
    fn the_canonical_form_is_that_of_the_standard() {
        let digest = Digest::of(b"x");
        let file = SiteFile {
            digest,
            bytes: 1,
            list: None,
        };
        // By code units U+1F600 comes before U+FB33, by code points after it.
        let paths = ["\u{fb33}", "\u{1f600}", "a\"b", "é"];
        let mut site = SiteManifest {
            files: paths.map(|path| (path.to_owned(), file)).into(),
            ..SiteManifest::default()
        };
        let expected = format!(
            "{{\"files\":{{\"a\\\"b\":\"{digest}\",\"é\":\"{digest}\",\"\u{1f600}\":\"{digest}\",\"\u{fb33}\":\"{digest}\"}},\"options\":{{}}}}"
        );
        let form = site.to_canonical().unwrap();
        assert_eq!(String::from_utf8(form.clone()).unwrap(), expected);
        assert_eq!(
            SiteManifest::digests_of_canonical(&form),
            Some(vec![digest; 4])
        );
        site.options.fallback = Some("index.html".to_owned());
        site.options.immutable = vec!["/a/*".to_owned()];
        // What is deleted is no content.
        site.deleted.insert("old".to_owned());
        let form = String::from_utf8(site.to_canonical().unwrap()).unwrap();
        assert!(
            form.ends_with(",\"options\":{\"fallback\":\"index.html\",\"immutable\":[\"/a/*\"]}}"),
            "{form}"
        );
    }

    #[test]
    fn the_stored_form_is_read_again() {
        let mut site = manifest(&["index.html", "large.bin", "docs/ü.html"]);
        site.options.fallback = Some("index.html".to_owned());
        site.options.immutable = vec!["/docs/*".to_owned()];
        let without_rules = site.clone();
        let before = site.to_object().unwrap();
        assert!(!String::from_utf8(before).unwrap().contains("rules"));
        let rules = r#"{"redirects":[{"pattern":[{"text":"a/"},"rest"],"target":{"path":[{"capture":0}]},"status":301}],
            "headers":[{"pattern":["placeholder"],"headers":[["x-a","b"]]}]}"#;
        site.rules = SiteRules::new(serde_json::from_str(rules).unwrap()).unwrap();
        site.deleted.insert("old".to_owned());
        let read = SiteManifest::from_object(&site.to_object().unwrap()).unwrap();
        assert_eq!(read, site);
        assert_eq!(
            site.to_canonical().unwrap(),
            without_rules.to_canonical().unwrap(),
            "rules follow from the files"
        );
        assert!(site.memory() > without_rules.memory());
        assert_eq!(site.size(), SiteSize { files: 3, bytes: 9 });
        assert!(SiteManifest::from_object(b"{}").is_none());
        assert!(SiteManifest::digests_of_canonical(b"{\"files\":{\"a\":\"b\"}}").is_none());
    }
}
