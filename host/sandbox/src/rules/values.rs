//! Rules of sites as the host keeps and applies them, and the files that they are judged from.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::values::BudgetKind;

/// Most bytes of a file of rules.
pub const MAX_RULE_FILE_BYTES: usize = 64 << 10;

/// Files of rules of a site.
#[derive(Clone, Debug, Default)]
pub struct RuleFiles {
    /// Bytes of `_redirects`.
    pub redirects: Option<Bytes>,
    /// Bytes of `_headers`.
    pub headers: Option<Bytes>,
    /// Whether redirects may lead to paths of the site alone.
    pub within_site: bool,
}

/// One of the files of rules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RuleFile {
    /// The file `_redirects`.
    Redirects,
    /// The file `_headers`.
    Headers,
}

impl RuleFile {
    /// Both files.
    pub const ALL: [Self; 2] = [Self::Redirects, Self::Headers];

    /// Returns the path of the file in its site.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Redirects => "_redirects",
            Self::Headers => "_headers",
        }
    }
}

impl fmt::Display for RuleFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// First fault of a file of rules.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleFault {
    /// The file.
    pub file: RuleFile,
    /// Line of the fault, from 1.
    pub line: u32,
    /// One sentence for the author.
    pub reason: String,
}

/// Part of a pattern of paths.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatternPart {
    /// These characters, decoded.
    Text(String),
    /// One whole segment that is not empty. It stands at the begin of the path or after a slash, and a slash follows it, or nothing.
    Placeholder,
    /// All that is left; last in its pattern, or before the text that paths end with.
    Rest,
}

/// Part of a target.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetPart {
    /// These characters, encoded as in a URL.
    Text(String),
    /// Text that the pattern has captured, by its number. It is still to be encoded.
    Capture(usize),
}

/// Target of a redirect.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RedirectTarget {
    /// Scheme and host; absent for a path of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Path without the slash at its begin.
    pub path: Vec<TargetPart>,
    /// Query without its question mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<Vec<TargetPart>>,
    /// Fragment without its hash sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragment: Option<String>,
}

/// Rule of `_redirects`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RedirectRule {
    /// Paths that the rule is for, relative to the site.
    pub pattern: Vec<PatternPart>,
    /// Address that it leads to.
    pub target: RedirectTarget,
    /// A status of a redirect; or 200 for a path of the site that answers in place of the asked one.
    pub status: u16,
}

/// Rule of `_headers`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HeaderRule {
    /// Paths that the rule is for, relative to the site.
    pub pattern: Vec<PatternPart>,
    /// Names in lower case, with values.
    pub headers: Vec<(String, String)>,
}

/// Rules of a site, in the order of its files.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SiteRules {
    /// Rules of `_redirects`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<RedirectRule>,
    /// Rules of `_headers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderRule>,
}

impl SiteRules {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.redirects.is_empty() && self.headers.is_empty()
    }
}

/// Reason why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesFailure {
    /// A file has a fault: its author can repair it.
    #[error("{}, line {}: {}", .0.file, .0.line, .0.reason)]
    Refused(RuleFault),
    /// Judging them takes more than a call may use.
    #[error("judging the rules takes more than the budget of {0}")]
    Budget(BudgetKind),
    /// The serving renderer judges no rules: the operator can install one that does.
    #[error("it judges no rules of sites")]
    Unsupported,
    /// The renderer is still being compiled: try again later.
    #[error("the renderer is still being prepared")]
    Preparing,
    /// No thread was free within 5 s: try again later.
    #[error("the renderer is busy")]
    Busy,
    /// The guest failed, which is our fault. The text is for the log and never for a client.
    #[error("the render guest failed: {0:#}")]
    Broken(anyhow::Error),
}
