//! Paths of files as parts of addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are escaped in an address: all but RFC 3986's unreserved ones, and the slash.
const ESCAPED_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Returns the path of a file as it stands in an address.
pub fn url_path(path: &str) -> String {
    utf8_percent_encode(path, ESCAPED_IN_PATH).to_string()
}
