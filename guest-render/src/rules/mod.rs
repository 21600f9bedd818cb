//! Rules of sites: the files `_headers` and `_redirects`, in the form that Netlify and Cloudflare gave them.
//!
//! Each file is read line by line, in time that is linear in its length. The first fault ends it.

mod headers;
mod lines;
mod pattern;
mod redirects;
mod target;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use crate::rule_bindings::exports::svc::rules::judge::{
    Fault, Header, HeaderRule, PatternPart, Redirect, RuleFile, RuleFiles, SiteRules, Target,
    TargetPart,
};

/// Sentence for the author that says what to write instead.
type Reason = Cow<'static, str>;

/// Longest piece of a file that a sentence repeats, in characters.
const MAX_EXCERPT_CHARS: usize = 60;

/// Judges the rules of a site.
///
/// # Errors
/// The first fault of its files.
pub fn judge(files: &RuleFiles) -> Result<SiteRules, Fault> {
    let redirects = match &files.redirects {
        Some(bytes) => redirects::parse(bytes, files.within_site)?,
        None => Vec::new(),
    };
    let headers = match &files.headers {
        Some(bytes) => headers::parse(bytes)?,
        None => Vec::new(),
    };
    Ok(SiteRules { redirects, headers })
}

/// Returns the begin of a piece of a file, for a sentence about it.
fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
