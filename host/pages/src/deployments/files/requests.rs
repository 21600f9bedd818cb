//! Files of a site in requests, and their checks: for REST and for tools alike.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use svc_base::json_object::JsonObject;
use svc_base::numbers::optional_whole_number;
use utoipa::ToSchema;

use super::NewSiteFile;
use crate::content::Digest;
use crate::deployments::sites::{SiteOptions, check_paths, is_rule_file, pattern_fault};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;

/// Files by their paths, of which requests have each once.
pub type FileSources = BTreeMap<String, FileSource>;

/// Type of a site.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SiteType {
    /// Set of files.
    Site,
}

/// Bytes of a file: a text, base64, or the SHA-256 of a file that the project has.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `text`, `base64`, or `sha256`"
)]
pub struct FileSource {
    /// The file as a text.
    pub text: Option<String>,
    /// The file in base64.
    #[schema(content_encoding = "base64")]
    pub base64: Option<String>,
    /// SHA-256 of a file that the project has, in hexadecimal.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub sha256: Option<String>,
    /// Length of that file in bytes, which is compared. It may be left out.
    #[serde(default, deserialize_with = "optional_whole_number")]
    pub size: Option<u64>,
}

impl FileSource {
    fn checked(self, path: &str) -> Result<NewSiteFile, Problem> {
        match self {
            Self {
                text: Some(text),
                base64: None,
                sha256: None,
                size: None,
            } => Ok(NewSiteFile::Inline(text.into())),
            Self {
                text: None,
                base64: Some(text),
                sha256: None,
                size: None,
            } => match STANDARD.decode(text) {
                Ok(bytes) => Ok(NewSiteFile::Inline(bytes.into())),
                Err(error) => Err(invalid_request(format!(
                    "In the file `{path}`: `base64` is not valid: {error}."
                ))),
            },
            Self {
                text: None,
                base64: None,
                sha256: Some(digest),
                size,
            } => match Digest::from_hex(&digest.to_ascii_lowercase()) {
                Some(digest) => Ok(NewSiteFile::Named(digest, size)),
                None => Err(invalid_request(format!(
                    "In the file `{path}`: `sha256` is none: write it as 64 hexadecimal digits."
                ))),
            },
            _ => Err(invalid_request(format!(
                "The file `{path}` is none: send `text`, `base64`, or `sha256`, which may have its `size` beside it."
            ))),
        }
    }
}

/// Reads files by their paths, for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The deserializer's, and of a path that stands twice.
pub fn unique_files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FileSources, D::Error> {
    deserializer.deserialize_map(UniqueFilesVisitor)
}

/// Reads files that may be null, like [`unique_files`].
///
/// # Errors
/// Those of [`unique_files`].
pub fn optional_unique_files<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<FileSources>, D::Error> {
    let files = Option::<UniqueFiles>::deserialize(deserializer)?;
    Ok(files.map(|UniqueFiles(files)| files))
}

/// Files that are read by [`unique_files`].
struct UniqueFiles(FileSources);

impl<'de> Deserialize<'de> for UniqueFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unique_files(deserializer).map(Self)
    }
}

struct UniqueFilesVisitor;

impl<'de> Visitor<'de> for UniqueFilesVisitor {
    type Value = FileSources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of files by their paths")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FileSources, A::Error> {
        let mut files = FileSources::new();
        while let Some(path) = entries.next_key::<String>()? {
            if files.contains_key(&path) {
                return Err(A::Error::custom(format_args!(
                    "the path `{path}` stands twice: send each file once"
                )));
            }
            let JsonObject(file) = entries.next_value()?;
            files.insert(path, file);
        }
        Ok(files)
    }
}

/// Checks the paths of files among each other, and each file.
///
/// # Errors
/// `path_refused`, `invalid_request`.
pub fn checked_files(files: FileSources) -> Result<BTreeMap<String, NewSiteFile>, Problem> {
    check_paths(files.keys().map(String::as_str))?;
    let files = files.into_iter().map(|(path, file)| {
        let file = file.checked(&path)?;
        Ok((path, file))
    });
    files.collect()
}

/// Most patterns of immutable paths.
const MAX_PATTERNS: usize = 100;

/// Checks the options of a site but for what its files say.
///
/// # Errors
/// `invalid_request`.
pub fn checked_options(options: SiteOptions) -> Result<SiteOptions, Problem> {
    let count = options.immutable.len();
    if count > MAX_PATTERNS {
        return Err(invalid_request(format!(
            "In `options`: `immutable` has {count} patterns; {MAX_PATTERNS} is the most. Name folders with a `*`, as in `/assets/*`."
        )));
    }
    if let Some(fallback) = options
        .fallback
        .as_deref()
        .filter(|path| is_rule_file(path))
    {
        return Err(invalid_request(format!(
            "In `options`: `fallback` names `{fallback}`, which has rules and is served to nobody."
        )));
    }
    for pattern in &options.immutable {
        if let Some(fault) = pattern_fault(pattern) {
            return Err(invalid_request(format!(
                "In `options`: the pattern `{pattern}` of `immutable` {fault}. Write `/path/of/a.file`, where a `*` stands for any characters, as in `/assets/*`."
            )));
        }
    }
    Ok(options)
}

/// Whether a body asks for a site.
pub fn names_site(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct NamedType<'b> {
        #[serde(rename = "type", borrow)]
        name: std::borrow::Cow<'b, str>,
    }
    // As in every body, a byte order mark is ignored.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let named = serde_json::from_slice::<NamedType<'_>>(body);
    named.is_ok_and(|named| named.name == "site")
}
