//! Requests about files of visitors, and their checks.

use serde::Deserialize;

use crate::backends::PICTURE_SIZES;
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;
use svc_base::ids::is_visitor_file_id;
use svc_base::numbers::optional_whole_number;

/// Most characters of a file's name.
const NAME_CHARS: usize = 255;
/// Name of a file whose name says nothing.
const NO_NAME: &str = "file";
/// Default and largest number of files in a page.
const DEFAULT_FILES: u32 = 50;
const MAX_FILES: u32 = 200;

/// Query of an upload.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UploadQuery {
    /// Name of the file; that of the form's part, if absent, else `file`.
    #[param(max_length = 255)]
    pub(super) name: Option<String>,
    /// Params of the action, as a JSON object.
    pub(super) params: Option<String>,
}

/// Query of a download.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DownloadQuery {
    /// Square that a smaller copy of a picture fits; the file itself, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 64, maximum = 2048)]
    pub(super) size: Option<u64>,
    /// Whether the browser is to save the file: 1, or absent.
    #[param(pattern = "^1$")]
    pub(super) download: Option<String>,
}

/// How a visitor is erased.
#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ForgetVisitor {
    /// Whether the visitor's files go, too; no, if absent.
    pub files: Option<bool>,
}

/// Which files to list.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListFiles {
    /// How many: 50, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl DownloadQuery {
    /// Returns the size, of which 0 is the file itself, and whether the file is to be saved.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(&self) -> Result<(u32, bool), Problem> {
        let size = match self.size.map(u32::try_from) {
            None => 0,
            Some(Ok(size)) if PICTURE_SIZES.contains(&size) => size,
            Some(_) => {
                return Err(invalid_request(
                    "`size` is one of 64, 128, 256, 512, 1024 and 2048.",
                ));
            }
        };
        match self.download.as_deref() {
            None | Some("0") => Ok((size, false)),
            Some("1") => Ok((size, true)),
            Some(_) => Err(invalid_request("`download` is 1, or left out.")),
        }
    }
}

impl ListFiles {
    /// Returns the file before which the page begins, and the page size.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(self) -> Result<(Option<String>, u32), Problem> {
        let most = match self.limit.map(u32::try_from) {
            None => DEFAULT_FILES,
            Some(Ok(limit)) if (1..=MAX_FILES).contains(&limit) => limit,
            Some(_) => {
                return Err(invalid_request(format!(
                    "`limit` must be from 1 to {MAX_FILES}."
                )));
            }
        };
        if self
            .cursor
            .as_deref()
            .is_some_and(|it| !is_visitor_file_id(it))
        {
            return Err(invalid_request(
                "`cursor` is not valid: send `next_cursor` of the previous page, or leave it out.",
            ));
        }
        Ok((self.cursor, most))
    }
}

/// Takes folders and control characters out of a file's name.
///
/// # Errors
/// `invalid_request` for one that is too long.
pub(super) fn checked_name(given: Option<&str>) -> Result<String, Problem> {
    let last = given.unwrap_or_default().rsplit(['/', '\\']).next();
    let is_shown = |c: &char| !c.is_control() && !is_direction(*c);
    let name: String = last.unwrap_or_default().chars().filter(is_shown).collect();
    let name = name.trim();
    let count = name.chars().count();
    if count > NAME_CHARS {
        return Err(invalid_request(format!(
            "`name` has {count} characters; {NAME_CHARS} is the most."
        )));
    }
    Ok(match name {
        "" | "." | ".." => NO_NAME.to_owned(),
        name => name.to_owned(),
    })
}

/// Whether a character changes the direction of what follows: a name with it may seem to have another ending.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_part_of_what_was_given() {
        for (given, name) in [
            (Some("a.png"), "a.png"),
            (Some("/etc/passwd"), "passwd"),
            (Some("C:\\pictures\\b.jpg"), "b.jpg"),
            (Some("../.."), "file"),
            (Some("a\r\nSet-Cookie: b"), "aSet-Cookie: b"),
            (Some("a\u{202e}gpj.exe"), "agpj.exe"),
            (Some("  "), "file"),
            (None, "file"),
            (Some("übung 1.pdf"), "übung 1.pdf"),
        ] {
            assert_eq!(checked_name(given).unwrap(), name);
        }
        checked_name(Some(&"é".repeat(255))).unwrap();
        assert!(checked_name(Some(&"é".repeat(256))).is_err());
    }

    #[test]
    fn a_size_is_one_of_a_few() {
        let query = |size, download: Option<&str>| {
            let download = download.map(str::to_owned);
            DownloadQuery { size, download }.checked()
        };
        assert_eq!(query(None, None).unwrap(), (0, false));
        assert_eq!(query(Some(256), Some("1")).unwrap(), (256, true));
        assert!(query(Some(100), None).is_err());
        assert!(query(None, Some("yes")).is_err());
    }
}
