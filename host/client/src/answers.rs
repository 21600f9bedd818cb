//! Answers of servers, read and judged as a stranger's: within a bound of bytes, and with every name by the rules that our server has.

use http::header;
use serde_json::Value;

use super::output::escape_excerpt;
use svc_base::names::{is_action_name, is_project_name, is_slug};

/// Bytes of an answer about one thing.
const SMALL: usize = 1 << 20;
/// Bytes of a list.
const LIST: usize = 8 << 20;
/// Bytes of an answer that holds sources or rows: several times what a server gives unless its operator has raised the limit.
const LARGE: usize = 16 << 20;
/// Bytes of a copy of a database, which goes to the disk and not into memory.
pub(super) const COPY: u64 = 1 << 30;
/// Bytes of a problem, which lists what is wrong with a batch.
pub(super) const PROBLEM: usize = 1 << 20;
/// How much of a value is quoted that is refused.
const QUOTED: usize = 60;

/// Bounds of an answer to a kind of request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseRules {
    /// The most bytes that are read into memory.
    pub(super) bytes: usize,
    /// Members that must be what a server of ours gives.
    members: &'static [Member],
}

/// Member of a document, and the rule for its value.
type Member = (&'static str, Rule);

/// Rule for a value. A member may be absent or null everywhere; who needs it asks for it.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// An identifier: letters, digits, `-` and `_`.
    Id,
    /// A slug, or the label of a host name.
    Slug,
    /// Name of an action.
    Action,
    /// Name of a project.
    Project,
    /// An address that a browser opens.
    Url,
    /// A time, or another position in a list to go on from.
    Cursor,
    /// A SHA-256 in hexadecimal.
    Digest,
    /// One word of a closed list: a type, a state.
    Word,
    /// A document with members of its own.
    One(&'static [Member]),
    /// A list of such documents.
    Each(&'static [Member]),
}

impl ResponseRules {
    const fn new(bytes: usize, members: &'static [Member]) -> Self {
        Self { bytes, members }
    }

    /// Finds a value that breaks its rule: returns the member's path and the value, cut for a sentence.
    pub(super) fn first_violation(&self, document: &Value) -> Option<(String, String)> {
        first_violation(document, self.members)
    }
}

const PROJECT_MEMBERS: &[Member] = &[
    ("id", Rule::Id),
    ("name", Rule::Project),
    ("host_label", Rule::Slug),
    ("home", Rule::Slug),
    ("url", Rule::Url),
    ("created_at", Rule::Cursor),
    ("expires_at", Rule::Cursor),
    ("members", Rule::Each(FRONTEND_MEMBERS)),
];
const FRONTEND_MEMBERS: &[Member] = &[
    ("id", Rule::Id),
    ("slug", Rule::Slug),
    ("url", Rule::Url),
    ("type", Rule::Word),
    ("state", Rule::Word),
    ("content_sha256", Rule::Digest),
    ("active_revision_id", Rule::Id),
    ("created_at", Rule::Cursor),
    ("updated_at", Rule::Cursor),
];
const REVISION_MEMBERS: &[Member] = &[
    ("revision_id", Rule::Id),
    ("content_sha256", Rule::Digest),
    ("state", Rule::Word),
    ("kind", Rule::Word),
    ("created_at", Rule::Cursor),
    ("promoted_at", Rule::Cursor),
];
const ACTION_MEMBERS: &[Member] = &[
    ("name", Rule::Action),
    ("kind", Rule::Word),
    ("checksum", Rule::Digest),
    ("created_at", Rule::Cursor),
];
const MIGRATION_MEMBERS: &[Member] = &[("checksum", Rule::Digest), ("applied_at", Rule::Cursor)];

pub(super) const NOTHING: ResponseRules = ResponseRules::new(SMALL, &[]);
pub(super) const SHARE: ResponseRules = ResponseRules::new(
    SMALL,
    &[
        ("id", Rule::Id),
        ("slug", Rule::Slug),
        ("url", Rule::Url),
        ("expires_at", Rule::Cursor),
        ("delete_token", Rule::Id),
    ],
);
pub(super) const PROJECTS: ResponseRules =
    ResponseRules::new(LIST, &[("projects", Rule::Each(PROJECT_MEMBERS))]);
pub(super) const PROJECT: ResponseRules = ResponseRules::new(LIST, PROJECT_MEMBERS);
pub(super) const FRONTENDS: ResponseRules =
    ResponseRules::new(LIST, &[("frontends", Rule::Each(FRONTEND_MEMBERS))]);
pub(super) const FRONTEND: ResponseRules = ResponseRules::new(SMALL, FRONTEND_MEMBERS);
pub(super) const SOURCE: ResponseRules = ResponseRules::new(
    LARGE,
    &[
        ("type", Rule::Word),
        ("content_sha256", Rule::Digest),
        ("revision_id", Rule::Id),
    ],
);
pub(super) const REVISIONS: ResponseRules = ResponseRules::new(
    LIST,
    &[
        ("active_revision_id", Rule::Id),
        ("revisions", Rule::Each(REVISION_MEMBERS)),
        ("next_cursor", Rule::Cursor),
    ],
);
pub(super) const REVISION: ResponseRules = ResponseRules::new(SMALL, REVISION_MEMBERS);
pub(super) const DRAFT: ResponseRules = ResponseRules::new(
    SMALL,
    &[
        ("revision", Rule::One(REVISION_MEMBERS)),
        ("preview_url", Rule::Url),
    ],
);
pub(super) const RELEASE: ResponseRules = ResponseRules::new(
    SMALL,
    &[
        ("frontend", Rule::One(FRONTEND_MEMBERS)),
        ("revision", Rule::One(REVISION_MEMBERS)),
    ],
);
pub(super) const RELEASES: ResponseRules = ResponseRules::new(
    LIST,
    &[(
        "releases",
        Rule::Each(&[
            ("revision_id", Rule::Id),
            ("kind", Rule::Word),
            ("at", Rule::Cursor),
        ]),
    )],
);
pub(super) const BACKEND: ResponseRules = ResponseRules::new(
    LARGE,
    &[
        ("id", Rule::Id),
        ("migrations", Rule::Each(MIGRATION_MEMBERS)),
        ("actions", Rule::Each(ACTION_MEMBERS)),
        ("checksum", Rule::Digest),
        ("status", Rule::Word),
        ("broken_actions", Rule::Each(&[("name", Rule::Action)])),
    ],
);
pub(super) const MOMENTS: ResponseRules = ResponseRules::new(
    LIST,
    &[
        ("moments", Rule::Each(&[("at", Rule::Cursor)])),
        ("oldest", Rule::Cursor),
        ("newest", Rule::Cursor),
        ("next_before", Rule::Cursor),
    ],
);
pub(super) const RESTORED: ResponseRules = ResponseRules::new(
    SMALL,
    &[("restored_to", Rule::Cursor), ("previous", Rule::Cursor)],
);
pub(super) const ROWS: ResponseRules = ResponseRules::new(LARGE, &[]);
pub(super) const DESCRIPTION: ResponseRules = ResponseRules::new(LIST, &[]);

impl Rule {
    fn admits(self, value: &Value) -> bool {
        let Some(text) = value.as_str() else {
            return false;
        };
        let all = |most: usize, is: fn(u8) -> bool| {
            (1..=most).contains(&text.len()) && text.bytes().all(is)
        };
        match self {
            Self::Id => {
                let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
                begins && all(128, |b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            }
            Self::Slug => is_slug(text),
            Self::Action => is_action_name(text),
            Self::Project => is_project_name(text),
            Self::Url => is_link(text),
            Self::Cursor => all(128, |b| b.is_ascii_alphanumeric() || b"-_:.+=".contains(&b)),
            Self::Digest => all(64, |b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) && text.len() == 64,
            Self::Word => all(32, |b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b)
            }),
            Self::One(_) | Self::Each(_) => false,
        }
    }
}

/// Whether a text is an address that a browser opens, as the standard writes it: nothing in it ends a line or begins an option.
fn is_link(text: &str) -> bool {
    /// The longest address that every browser takes.
    const MOST: usize = 2048;
    let link = text.len() <= MOST && text.bytes().all(|b| b.is_ascii_graphic());
    link && url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn first_violation(document: &Value, members: &[Member]) -> Option<(String, String)> {
    members.iter().find_map(|(name, rule)| {
        let value = document.get(name).filter(|value| !value.is_null())?;
        let below = |(path, value): (String, String)| (format!("{name}.{path}"), value);
        match (rule, value) {
            (Rule::One(members), Value::Object(_)) => first_violation(value, members).map(below),
            (Rule::Each(members), Value::Array(list)) => {
                let mut list = list.iter();
                list.find_map(|one| first_violation(one, members))
                    .map(below)
            }
            (rule, value) if rule.admits(value) => None,
            (_, value) => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                Some(((*name).to_owned(), escape_excerpt(&text, QUOTED)))
            }
        }
    })
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It has more bytes than the bound.
    TooLarge,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// Reads the body of an answer into memory, if it has at most so many bytes.
pub(super) async fn body(
    mut response: reqwest::Response,
    most: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::new();
    stream(&mut response, most as u64, |part| {
        bytes.extend_from_slice(part);
        Ok::<_, BodyError>(())
    })
    .await?;
    Ok(bytes)
}

/// Hands the parts of a body on, as long as there are at most so many bytes; returns how many there were.
pub(super) async fn stream<E: From<BodyError>>(
    response: &mut reqwest::Response,
    most: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let announced = response.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > most) {
        return Err(BodyError::TooLarge.into());
    }
    let mut read = 0;
    while let Some(part) = response.chunk().await.map_err(BodyError::Broken)? {
        read += part.len() as u64;
        if read > most {
            return Err(BodyError::TooLarge.into());
        }
        take(&part)?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_what_a_server_of_ours_gives_or_is_refused() {
        let digest = "0".repeat(64);
        for (rule, good, bad) in [
            (
                Rule::Id,
                &["01a1fc28-c57b-71f4-90db-2871ff5bd43a", "svcd_0", "1"][..],
                &["", "..", "a/b", "a b", "$(id)", "a\n", "ä", "-a"][..],
            ),
            (
                Rule::Slug,
                &["a", "a-b"],
                &["", ".", "..", "A", "-a", "a/b"],
            ),
            (Rule::Action, &["a", "a_1"], &["", "_a", "A", "a-b", "../a"]),
            (Rule::Project, &["Web shop", "日本"], &["", "  "]),
            (
                Rule::Url,
                &["https://a.example/b", "http://a.localhost:8080/b?c#d"],
                &[
                    "",
                    "file:///etc/passwd",
                    "javascript:alert(1)",
                    "--help",
                    "https://",
                    "http://a.example/\nrm",
                    "http://a.example/\u{202e}",
                    "http:// a",
                ],
            ),
            (
                Rule::Cursor,
                &["2026-11-20T12:00:00.000Z", "17"],
                &["", "$(id)", "a b", "a;b"],
            ),
            (Rule::Digest, &[digest.as_str()], &["0", "G", ""]),
            (Rule::Word, &["markdown", "rolled_back"], &["", "A", "a/b"]),
        ] {
            for text in good {
                assert!(rule.admits(&json!(text)), "{rule:?} {text}");
            }
            for text in bad {
                assert!(!rule.admits(&json!(text)), "{rule:?} {text}");
            }
            for other in [json!(1), json!(true), json!([]), json!({})] {
                assert!(!rule.admits(&other), "{rule:?} {other}");
            }
        }
    }

    #[test]
    fn what_is_refused_is_named_by_its_path() {
        let list = |slug: Value| json!({ "frontends": [{ "slug": "a" }, { "slug": slug }] });
        let found = |document: Value| FRONTENDS.first_violation(&document);
        assert_eq!(found(list(json!("b"))), None);
        assert_eq!(found(list(Value::Null)), None);
        for (slug, quoted) in [
            (json!("../x\u{1b}"), "../x\\u{1b}".to_owned()),
            (json!(5), "5".to_owned()),
            (json!("x".repeat(100)), format!("{}…", "x".repeat(60))),
        ] {
            let path = "frontends.slug".to_owned();
            assert_eq!(found(list(slug)), Some((path, quoted)));
        }
        let no_list = found(json!({ "frontends": {} }));
        assert_eq!(no_list, Some(("frontends".into(), "{}".into())));
    }
}
