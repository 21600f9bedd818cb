//! Binds of a statement.

use std::collections::BTreeSet;

use crate::position::{LocatedRefusalReason, quote_excerpt};
use crate::statement::SqlPurpose;
use crate::token::{Token, TokenKind};

/// Binds that the server fills in with the signed-in visitor.
pub const RESERVED_BINDS: [&str; 3] = ["svc_user_id", "svc_user_email", "svc_user_name"];

/// Bind that the server fills in with the file that is uploaded or downloaded.
pub const FILE_BIND: &str = "svc_file";

/// Binds that the server fills in with what it knows of an uploaded file: for actions that write.
pub const UPLOAD_BINDS: [&str; 4] = [
    "svc_file_name",
    "svc_file_type",
    "svc_file_size",
    "svc_file_sha256",
];

/// Length limit of a bind's name.
const MAX_NAME_LENGTH: usize = 64;

/// Returns the names of the binds in order of first appearance, or the fault of the first bind that is not allowed.
pub(crate) fn check_binds(
    sql: &str,
    tokens: &[Token],
    purpose: SqlPurpose,
) -> Result<Vec<String>, LocatedRefusalReason> {
    let mut binds = Vec::new();
    let mut known = BTreeSet::new();
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Bind) {
        let text = token.text(sql);
        if let Some(reason) = bind_fault(text, purpose) {
            return Err(LocatedRefusalReason::new(token.start, reason));
        }
        let name = text.trim_start_matches(':');
        if known.insert(name) {
            binds.push(name.to_owned());
        }
    }
    Ok(binds)
}

fn bind_fault(text: &str, purpose: SqlPurpose) -> Option<String> {
    let shown = quote_excerpt(text);
    if matches!(purpose, SqlPurpose::Schema | SqlPurpose::Migration) {
        return Some(format!(
            "The bind {shown} cannot be filled in a script: write the value itself."
        ));
    }
    let Some(name) = text.strip_prefix(':') else {
        return Some(format!(
            "The bind {shown} has no name with a colon: write `:name`."
        ));
    };
    let mut letters = name.bytes();
    let is_name = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Some(format!(
            "The bind {shown} is not a name of ASCII letters, digits and _, with no digit first."
        ));
    }
    if name.len() > MAX_NAME_LENGTH {
        return Some(format!(
            "The bind {shown} is longer than {MAX_NAME_LENGTH} characters."
        ));
    }
    let reserved = name
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("svc_"));
    if !reserved {
        return None;
    }
    if purpose == SqlPurpose::Query {
        return Some(format!(
            "The bind {shown} is reserved: a query has no visitor, so name the bind otherwise."
        ));
    }
    let is_known =
        RESERVED_BINDS.contains(&name) || name == FILE_BIND || UPLOAD_BINDS.contains(&name);
    (!is_known).then(|| {
        format!(
            "The bind {shown} is reserved: only `:svc_user_id`, `:svc_user_email`, `:svc_user_name`, `:svc_file` and, in an action that writes, `:svc_file_name`, `:svc_file_type`, `:svc_file_size` and `:svc_file_sha256` begin so."
        )
    })
}

/// Checks the binds of a file in an action that reads, or writes: one that reads gets none of what is known of an upload, and one that
/// has such binds stores the file.
pub(crate) fn check_file_binds(
    sql: &str,
    tokens: &[Token],
    binds: &[String],
    writes: bool,
) -> Result<(), LocatedRefusalReason> {
    let is_upload_bind = |name: &str| UPLOAD_BINDS.contains(&name);
    let Some(found) = binds.iter().find(|name| is_upload_bind(name)) else {
        return Ok(());
    };
    let reason = if !writes {
        format!(
            "The bind `:{found}` is for an action that writes, which stores an uploaded file: read the columns of `svc_files`."
        )
    } else if binds.iter().any(|name| name == FILE_BIND) {
        return Ok(());
    } else {
        format!("The bind `:{found}` stands beside `:svc_file`, which is missing: store it, too.")
    };
    let mut tokens = tokens.iter();
    let token = tokens.find(|token| {
        token.kind == TokenKind::Bind && token.text(sql).trim_start_matches(':') == found
    });
    let start = token.map_or(0, |token| token.start);
    Err(LocatedRefusalReason::new(start, reason))
}
