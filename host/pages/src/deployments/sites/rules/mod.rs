//! Rules of a site as they are applied: redirects, rewrites and headers, by the paths that they are for.
//!
//! A guest has judged them, and nothing of their files is read here. Applying them takes time that is linear in their length.

mod headers;
mod matching;
mod redirects;

use http::{HeaderName, HeaderValue};
use svc_sandbox::{HeaderRule, SiteRules as JudgedRules};

use matching::RuleIndex;

pub use headers::{HeaderScope, keeps_from_edges};
pub use redirects::RuleRedirect;

/// Status of a rule whose target answers in place of the asked path.
const REWRITE_STATUS: u16 = 200;

/// Header of an answer.
type Header = (HeaderName, HeaderValue);

/// Rules of a site, prepared for its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRules {
    judged: JudgedRules,
    redirects: RuleIndex,
    rewrites: RuleIndex,
    /// Headers of each rule of `judged.headers`.
    headers: Vec<Vec<Header>>,
    /// About how many bytes this takes in memory.
    bytes: u64,
}

impl SiteRules {
    /// Prepares judged rules; `None` if one sets what is no header.
    pub fn new(judged: JudgedRules) -> Option<Self> {
        let index = |is_rewrite: bool| {
            let rules = judged.redirects.iter().enumerate();
            let rules = rules.filter(|(_, rule)| (rule.status == REWRITE_STATUS) == is_rewrite);
            RuleIndex::new(rules.map(|(number, rule)| (number, rule.pattern.as_slice())))
        };
        let headers = judged.headers.iter().map(prepared_headers);
        // Texts are there twice, and what is around them takes as much again.
        let form = match judged.is_empty() {
            true => Vec::new(),
            false => serde_json::to_vec(&judged).ok()?,
        };
        Some(Self {
            redirects: index(false),
            rewrites: index(true),
            headers: headers.collect::<Option<_>>()?,
            bytes: 4 * form.len() as u64,
            judged,
        })
    }

    /// Returns the rules as a guest has judged them.
    pub fn judged(&self) -> &JudgedRules {
        &self.judged
    }

    /// Returns about how many bytes this takes in memory.
    pub fn memory(&self) -> u64 {
        self.bytes
    }
}

fn prepared_headers(rule: &HeaderRule) -> Option<Vec<Header>> {
    let headers = rule.headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value).ok()?))
    });
    headers.collect()
}
