//! Files of a site in requests, and their checks: for REST and for tools alike.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use svc_base::numbers::optional_whole_number;
use utoipa::ToSchema;

use super::NewSiteFile;
use crate::content::Digest;
use crate::deployments::sites::{SiteOptions, check_paths, pattern_fault};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;

/// Files by their paths.
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
#[serde(deny_unknown_fields)]
pub struct FileSource {
    /// The file as a text.
    pub text: Option<String>,
    /// The file in base64.
    #[schema(content_encoding = "base64")]
    pub base64: Option<String>,
    /// SHA-256 of a file that the project has, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub sha256: Option<String>,
    /// Length of that file in bytes, which is compared.
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
            } => match Digest::from_hex(&digest) {
                Some(digest) => Ok(NewSiteFile::Named(digest, size)),
                None => Err(invalid_request(format!(
                    "In the file `{path}`: `sha256` is none: write it as 64 hexadecimal digits, in lower case."
                ))),
            },
            _ => Err(invalid_request(format!(
                "The file `{path}` is none: send `text`, `base64`, or `sha256` with `size`."
            ))),
        }
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
            "In `options`: `immutable` has {count} patterns; {MAX_PATTERNS} is the most. Name folders with a `*` at the end."
        )));
    }
    for pattern in &options.immutable {
        if let Some(fault) = pattern_fault(pattern) {
            return Err(invalid_request(format!(
                "In `options`: the pattern `{pattern}` of `immutable` {fault}. Write `/path/of/a.file`, or the beginning of paths with a `*` at the end, as in `/assets/*`."
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
