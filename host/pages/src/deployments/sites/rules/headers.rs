//! Headers that rules add to the answers of a site.

use http::{HeaderMap, HeaderName, header};

use super::SiteRules;
use super::matching::captures;

/// Scope of service workers, which would reach beyond the site where others share its origin.
const SERVICE_WORKER_ALLOWED: &str = "service-worker-allowed";

/// Headers that isolate an origin. A page in a sandbox has none: browsers open no page that has both, or load nothing into it.
const ISOLATION: [&str; 2] = ["cross-origin-embedder-policy", "cross-origin-opener-policy"];

/// Headers of which an answer has one: that of the last rule, in place of the platform's default. Of others each rule adds its own.
const SINGLE: [&str; 9] = [
    "cache-control",
    "content-disposition",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    SERVICE_WORKER_ALLOWED,
    "x-frame-options",
];

/// Answer that rules are applied to.
#[derive(Clone, Copy, Debug)]
pub struct HeaderScope {
    /// Whether the site has nothing for the path, and says so.
    pub is_missing: bool,
    /// Whether the site is asked for on the origin of its project.
    pub is_own_origin: bool,
    /// Whether it is a preview, of which the platform says for how long it is kept.
    pub is_preview: bool,
}

impl HeaderScope {
    /// Whether an answer goes without a header.
    fn leaves_out(self, name: &HeaderName) -> bool {
        let describes_file = [header::CACHE_CONTROL, header::CONTENT_TYPE].contains(name);
        (self.is_missing && describes_file)
            || (self.is_preview && *name == header::CACHE_CONTROL)
            || (!self.is_own_origin && name == SERVICE_WORKER_ALLOWED)
    }
}

impl SiteRules {
    /// Adds the headers of all rules that are for a path, which is decoded and relative to the site. A policy that is there already is the
    /// platform's sandbox.
    pub fn add_headers(&self, path: &str, scope: HeaderScope, headers: &mut HeaderMap) {
        if self.headers.is_empty() {
            return;
        }
        let is_sandboxed = headers.contains_key(header::CONTENT_SECURITY_POLICY);
        let is_kept = |name: &HeaderName| {
            let is_lost = is_sandboxed && ISOLATION.contains(&name.as_str());
            !is_lost && !scope.leaves_out(name)
        };
        let rules = self.judged.headers.iter().zip(&self.headers);
        for (_, added) in rules.filter(|(rule, _)| captures(&rule.pattern, path).is_some()) {
            for (name, value) in added.iter().filter(|(name, _)| is_kept(name)) {
                let (name, value) = (name.clone(), value.clone());
                if SINGLE.contains(&name.as_str()) {
                    headers.insert(name, value);
                } else {
                    headers.append(name, value);
                }
            }
        }
    }
}

/// Whether caches that visitors share must not keep an answer.
pub fn keeps_from_edges(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let mut directives = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    directives.any(|directive| {
        let name = directive.split('=').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("private") || name.eq_ignore_ascii_case("no-store")
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use svc_sandbox::{HeaderRule, PatternPart, SiteRules as JudgedRules};

    use super::*;

    fn rule(pattern: Vec<PatternPart>, headers: &[(&str, &str)]) -> HeaderRule {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        HeaderRule {
            pattern,
            headers: headers.collect(),
        }
    }

    #[test]
    fn later_rules_replace_or_add() {
        let all = rule(
            vec![PatternPart::Rest],
            &[
                ("cache-control", "no-cache"),
                ("content-security-policy", "default-src 'self'"),
                ("service-worker-allowed", "/"),
                ("x-a", "1"),
            ],
        );
        let one = rule(
            vec![PatternPart::Text("a.js".to_owned())],
            &[
                ("cache-control", "private, max-age=1"),
                ("content-type", "text/plain"),
                ("x-a", "2"),
            ],
        );
        let judged = JudgedRules {
            redirects: Vec::new(),
            headers: vec![all, one],
        };
        let rules = SiteRules::new(judged).unwrap();
        let apply = |path: &str, is_missing, is_own_origin| {
            let mut headers = HeaderMap::new();
            let sandbox = HeaderValue::from_static("sandbox");
            headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
            let default = HeaderValue::from_static("public, max-age=0");
            headers.insert(header::CACHE_CONTROL, default);
            let scope = HeaderScope {
                is_missing,
                is_own_origin,
                is_preview: path == "preview",
            };
            rules.add_headers(path, scope, &mut headers);
            let of = |name: &str| {
                let values = headers.get_all(name).iter();
                let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
                values.join(" | ")
            };
            [
                of("cache-control"),
                of("content-security-policy"),
                of("content-type"),
                of("service-worker-allowed"),
                of("x-a"),
            ]
        };
        let policies = "sandbox | default-src 'self'";
        assert_eq!(
            apply("a.js", false, true),
            ["private, max-age=1", policies, "text/plain", "/", "1 | 2"]
        );
        assert_eq!(
            apply("b", false, false),
            ["no-cache", policies, "", "", "1"]
        );
        assert_eq!(
            apply("preview", false, false),
            ["public, max-age=0", policies, "", "", "1"],
            "the platform says how long a preview is kept"
        );
        assert_eq!(
            apply("a.js", true, true),
            ["public, max-age=0", policies, "", "/", "1 | 2"]
        );
    }

    #[test]
    fn a_sandbox_is_not_isolated() {
        let isolation = [
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-embedder-policy", "require-corp"),
            ("content-security-policy", "default-src 'self'"),
        ];
        let judged = JudgedRules {
            redirects: Vec::new(),
            headers: vec![rule(vec![PatternPart::Rest], &isolation)],
        };
        let rules = SiteRules::new(judged).unwrap();
        let scope = HeaderScope {
            is_preview: false,
            is_missing: false,
            is_own_origin: true,
        };
        let mut headers = HeaderMap::new();
        rules.add_headers("", scope, &mut headers);
        assert_eq!(headers.len(), 3);
        let sandbox = HeaderValue::from_static("sandbox");
        let mut headers = HeaderMap::from_iter([(header::CONTENT_SECURITY_POLICY, sandbox)]);
        rules.add_headers("", scope, &mut headers);
        assert_eq!((headers.len(), headers.keys_len()), (2, 1));
    }

    #[test]
    fn edges_keep_nothing_private() {
        for (value, kept_out) in [
            ("public, max-age=60", false),
            ("no-cache", false),
            ("private", true),
            ("max-age=0, Private=\"x\"", true),
            ("NO-STORE", true),
            ("x-private, s-maxage=1", false),
        ] {
            let value_of = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(header::CACHE_CONTROL, value_of)]);
            assert_eq!(keeps_from_edges(&headers), kept_out, "{value}");
        }
    }
}
