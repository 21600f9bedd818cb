//! Checks of the server's answers, which are not trusted: each has a size limit, and each value a rule.

use std::time::Duration;

use http::header;
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use super::output::escape_excerpt;
use svc_base::names::{is_action_name, is_project_name, is_slug};
use svc_base::pluralize;

/// Size limit of an answer about one thing, in bytes.
const SMALL_BYTES: usize = 1 << 20;
/// Size limit of a list, in bytes.
const LIST_BYTES: usize = 8 << 20;
/// Size limit of an answer with sources or rows, in bytes: several times what a server sends by default.
const LARGE_BYTES: usize = 16 << 20;
/// Size limit of an exported database, which is written to disk, in bytes.
pub(super) const MAX_EXPORT_BYTES: u64 = 1 << 30;
/// Size limit of a problem document, in bytes.
pub(super) const MAX_PROBLEM_BYTES: usize = 1 << 20;
/// The most characters of a refused value in a message.
const MAX_QUOTED_CHARACTERS: usize = 60;
/// Most entries of a list in an answer.
const MAX_LIST: usize = 100_000;
/// Most objects and lists of an answer. Each of them takes up to a hundred times its bytes in memory.
const MAX_CONTAINERS: usize = 500_000;

/// Least rate of a body: so many bytes in each period, or the end. It counts in ticks in which the server is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastRate {
    /// Bytes that arrive in a period.
    bytes: u64,
    /// Length of a period, in ticks.
    ticks: u32,
    /// Length of a tick.
    tick: Duration,
}

/// Least rate of every body: 4 MiB in five minutes. A server that sends a byte now and then would hold a command for ever.
pub(super) const LEAST_RATE: LeastRate = LeastRate {
    bytes: 4 << 20,
    ticks: 300,
    tick: Duration::from_secs(1),
};

/// Size limit and rules for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseConstraints {
    /// The most bytes that are read into memory.
    pub(super) max_bytes: usize,
    /// Members with a rule for their values.
    members: &'static [MemberConstraint],
}

/// Member of a document, and the rule for its value.
type MemberConstraint = (&'static str, MemberRule);

/// Rule for a value. Any member may be absent or null.
#[derive(Clone, Copy, Debug)]
enum MemberRule {
    /// An identifier: letters, digits, `-` and `_`.
    Id,
    /// A slug, or the label of a host name.
    Slug,
    /// Name of an action.
    Action,
    /// Name of a project.
    Project,
    /// A host name.
    Host,
    /// An absolute `http` or `https` URL.
    Url,
    /// A time, or a cursor of a list.
    Cursor,
    /// Target of an entry of the audit: an identifier, or several with slashes between them.
    Target,
    /// A SHA-256 in hexadecimal.
    Digest,
    /// One word of a fixed set, such as a type or a state.
    Word,
    /// A document with rules for its members.
    Document(&'static [MemberConstraint]),
    /// A list of such documents.
    List(&'static [MemberConstraint]),
}

impl ResponseConstraints {
    const fn new(max_bytes: usize, members: &'static [MemberConstraint]) -> Self {
        Self { max_bytes, members }
    }

    /// Finds the first value that breaks its rule: returns the path of the member, and the shortened value.
    pub(super) fn first_violation(&self, document: &Value) -> Option<(String, String)> {
        first_violation(document, self.members)
    }
}

const PROJECT_MEMBERS: &[MemberConstraint] = &[
    ("id", MemberRule::Id),
    ("name", MemberRule::Project),
    ("host_label", MemberRule::Slug),
    ("home", MemberRule::Slug),
    ("url", MemberRule::Url),
    ("created_at", MemberRule::Cursor),
    ("expires_at", MemberRule::Cursor),
    ("members", MemberRule::List(FRONTEND_MEMBERS)),
    (
        "workspace",
        MemberRule::Document(&[("id", MemberRule::Id), ("slug", MemberRule::Slug)]),
    ),
];
const FRONTEND_MEMBERS: &[MemberConstraint] = &[
    ("id", MemberRule::Id),
    ("slug", MemberRule::Slug),
    ("url", MemberRule::Url),
    ("type", MemberRule::Word),
    ("state", MemberRule::Word),
    ("content_sha256", MemberRule::Digest),
    ("active_revision_id", MemberRule::Id),
    ("created_at", MemberRule::Cursor),
    ("updated_at", MemberRule::Cursor),
];
const REVISION_MEMBERS: &[MemberConstraint] = &[
    ("revision_id", MemberRule::Id),
    ("content_sha256", MemberRule::Digest),
    ("state", MemberRule::Word),
    ("kind", MemberRule::Word),
    ("created_at", MemberRule::Cursor),
    ("promoted_at", MemberRule::Cursor),
];
const ACTION_MEMBERS: &[MemberConstraint] = &[
    ("name", MemberRule::Action),
    ("kind", MemberRule::Word),
    ("checksum", MemberRule::Digest),
    ("created_at", MemberRule::Cursor),
];
const VERSION_MEMBERS: &[MemberConstraint] = &[
    ("checksum", MemberRule::Digest),
    ("created_at", MemberRule::Cursor),
];
const MIGRATION_MEMBERS: &[MemberConstraint] = &[
    ("checksum", MemberRule::Digest),
    ("applied_at", MemberRule::Cursor),
];

const PRICE_MEMBERS: &[MemberConstraint] = &[
    ("id", MemberRule::Id),
    ("key", MemberRule::Id),
    ("currency", MemberRule::Word),
    ("created_at", MemberRule::Cursor),
];

const DOMAIN_MEMBERS: &[MemberConstraint] = &[
    ("name", MemberRule::Host),
    ("state", MemberRule::Word),
    ("redirect_to", MemberRule::Host),
    ("created_at", MemberRule::Cursor),
    ("verified_at", MemberRule::Cursor),
    ("checked_at", MemberRule::Cursor),
    (
        "certificate",
        MemberRule::Document(&[
            ("state", MemberRule::Word),
            ("not_after", MemberRule::Cursor),
        ]),
    ),
    ("records", MemberRule::List(RECORD_MEMBERS)),
];
const RECORD_MEMBERS: &[MemberConstraint] = &[("type", MemberRule::Id), ("name", MemberRule::Host)];

pub(super) const DOMAIN: ResponseConstraints =
    ResponseConstraints::new(SMALL_BYTES, DOMAIN_MEMBERS);
pub(super) const DOMAINS: ResponseConstraints =
    ResponseConstraints::new(LIST_BYTES, &[("domains", MemberRule::List(DOMAIN_MEMBERS))]);
pub(super) const NOTHING: ResponseConstraints = ResponseConstraints::new(SMALL_BYTES, &[]);
pub(super) const SHARE: ResponseConstraints = ResponseConstraints::new(
    SMALL_BYTES,
    &[
        ("id", MemberRule::Id),
        ("slug", MemberRule::Slug),
        ("url", MemberRule::Url),
        ("expires_at", MemberRule::Cursor),
        ("delete_token", MemberRule::Id),
    ],
);
pub(super) const PROJECTS: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[("projects", MemberRule::List(PROJECT_MEMBERS))],
);
pub(super) const PROJECT: ResponseConstraints =
    ResponseConstraints::new(LIST_BYTES, PROJECT_MEMBERS);
pub(super) const FRONTENDS: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[("frontends", MemberRule::List(FRONTEND_MEMBERS))],
);
pub(super) const FRONTEND: ResponseConstraints =
    ResponseConstraints::new(SMALL_BYTES, FRONTEND_MEMBERS);
pub(super) const SOURCE: ResponseConstraints = ResponseConstraints::new(
    LARGE_BYTES,
    &[
        ("type", MemberRule::Word),
        ("content_sha256", MemberRule::Digest),
        ("revision_id", MemberRule::Id),
    ],
);
pub(super) const REVISIONS: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        ("active_revision_id", MemberRule::Id),
        ("revisions", MemberRule::List(REVISION_MEMBERS)),
        ("next_cursor", MemberRule::Cursor),
    ],
);
pub(super) const REVISION: ResponseConstraints =
    ResponseConstraints::new(SMALL_BYTES, REVISION_MEMBERS);
pub(super) const DRAFT: ResponseConstraints = ResponseConstraints::new(
    SMALL_BYTES,
    &[
        ("revision", MemberRule::Document(REVISION_MEMBERS)),
        ("preview_url", MemberRule::Url),
    ],
);
pub(super) const RELEASE: ResponseConstraints = ResponseConstraints::new(
    SMALL_BYTES,
    &[
        ("frontend", MemberRule::Document(FRONTEND_MEMBERS)),
        ("revision", MemberRule::Document(REVISION_MEMBERS)),
    ],
);
pub(super) const RELEASES: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[(
        "releases",
        MemberRule::List(&[
            ("revision_id", MemberRule::Id),
            ("kind", MemberRule::Word),
            ("at", MemberRule::Cursor),
        ]),
    )],
);
pub(super) const RELEASED: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        (
            "migrations",
            MemberRule::List(&[("status", MemberRule::Word)]),
        ),
        ("actions", MemberRule::List(ACTION_MEMBERS)),
        (
            "pages",
            MemberRule::List(&[
                ("slug", MemberRule::Slug),
                ("change", MemberRule::Word),
                ("deployment_id", MemberRule::Id),
                ("revision_id", MemberRule::Id),
                ("url", MemberRule::Url),
            ]),
        ),
        (
            "broken_actions",
            MemberRule::List(&[("name", MemberRule::Action)]),
        ),
    ],
);
pub(super) const BACKEND: ResponseConstraints = ResponseConstraints::new(
    LARGE_BYTES,
    &[
        ("id", MemberRule::Id),
        ("migrations", MemberRule::List(MIGRATION_MEMBERS)),
        ("actions", MemberRule::List(ACTION_MEMBERS)),
        ("checksum", MemberRule::Digest),
        ("status", MemberRule::Word),
        (
            "broken_actions",
            MemberRule::List(&[("name", MemberRule::Action)]),
        ),
    ],
);
pub(super) const ACTION: ResponseConstraints =
    ResponseConstraints::new(SMALL_BYTES, ACTION_MEMBERS);
pub(super) const ACTION_VERSIONS: ResponseConstraints = ResponseConstraints::new(
    LARGE_BYTES,
    &[
        ("versions", MemberRule::List(VERSION_MEMBERS)),
        ("next_cursor", MemberRule::Cursor),
    ],
);
pub(super) const VISITOR_FILES: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        (
            "files",
            MemberRule::List(&[
                ("id", MemberRule::Id),
                ("sha256", MemberRule::Digest),
                ("user_id", MemberRule::Id),
                ("created_at", MemberRule::Cursor),
            ]),
        ),
        ("next_cursor", MemberRule::Cursor),
    ],
);
pub(super) const MOMENTS: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        ("moments", MemberRule::List(&[("at", MemberRule::Cursor)])),
        ("oldest", MemberRule::Cursor),
        ("newest", MemberRule::Cursor),
        ("next_before", MemberRule::Cursor),
    ],
);
pub(super) const RESTORED: ResponseConstraints = ResponseConstraints::new(
    SMALL_BYTES,
    &[
        ("restored_to", MemberRule::Cursor),
        ("previous", MemberRule::Cursor),
    ],
);
pub(super) const AUDIT: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        (
            "entries",
            MemberRule::List(&[
                ("at", MemberRule::Cursor),
                ("principal", MemberRule::Id),
                ("action", MemberRule::Cursor),
                ("target", MemberRule::Target),
            ]),
        ),
        ("next_cursor", MemberRule::Cursor),
    ],
);
pub(super) const WORKSPACES: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[(
        "workspaces",
        MemberRule::List(&[("id", MemberRule::Id), ("slug", MemberRule::Slug)]),
    )],
);
const LOG_ENTRY_MEMBERS: &[MemberConstraint] = &[
    ("id", MemberRule::Id),
    ("at", MemberRule::Cursor),
    ("kind", MemberRule::Word),
    ("action", MemberRule::Action),
    ("slug", MemberRule::Slug),
    ("code", MemberRule::Word),
];
/// Rules for an entry of a log that is followed.
pub(super) const LOG_ENTRY: ResponseConstraints =
    ResponseConstraints::new(SMALL_BYTES, LOG_ENTRY_MEMBERS);
pub(super) const LOG: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[("entries", MemberRule::List(LOG_ENTRY_MEMBERS))],
);
pub(super) const STATS: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[
        ("from", MemberRule::Cursor),
        ("to", MemberRule::Cursor),
        ("step", MemberRule::Word),
        ("series", MemberRule::List(&[("at", MemberRule::Cursor)])),
        ("pages", MemberRule::List(&[("slug", MemberRule::Slug)])),
        ("actions", MemberRule::List(&[("name", MemberRule::Action)])),
    ],
);
pub(super) const ROWS: ResponseConstraints = ResponseConstraints::new(LARGE_BYTES, &[]);
pub(super) const CATALOG: ResponseConstraints = ResponseConstraints::new(
    LIST_BYTES,
    &[(
        "products",
        MemberRule::List(&[
            ("id", MemberRule::Id),
            ("prices", MemberRule::List(PRICE_MEMBERS)),
        ]),
    )],
);
pub(super) const PRICE: ResponseConstraints = ResponseConstraints::new(SMALL_BYTES, PRICE_MEMBERS);
pub(super) const DESCRIPTION: ResponseConstraints = ResponseConstraints::new(LIST_BYTES, &[]);

impl MemberRule {
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
            Self::Url => is_web_url(text),
            Self::Host => {
                let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                begins && all(253, |b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
            }
            // Without a first character that would make it an option of the next command.
            Self::Cursor => {
                let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
                begins && all(128, |b| b.is_ascii_alphanumeric() || b"-_:.+=".contains(&b))
            }
            Self::Target => text.split('/').all(|part| {
                let begins = part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                let is = |b: u8| b.is_ascii_alphanumeric() || b"-_:.+=".contains(&b);
                begins && part.len() <= 128 && part.bytes().all(is)
            }),
            Self::Digest => all(64, |b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) && text.len() == 64,
            Self::Word => all(32, |b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b)
            }),
            Self::Document(_) | Self::List(_) => false,
        }
    }
}

/// Whether a text is an absolute URL of visible ASCII characters, without those that no URL has.
fn is_web_url(text: &str) -> bool {
    /// The longest URL that every browser accepts.
    const MOST: usize = 2048;
    let is_allowed = |b: u8| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b);
    let link = text.len() <= MOST && text.bytes().all(is_allowed);
    link && url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn first_violation(document: &Value, members: &[MemberConstraint]) -> Option<(String, String)> {
    // An array would pass by the rules of members, and still be read as a struct.
    if !members.is_empty() && !document.is_object() {
        let text = escape_excerpt(&document.to_string(), MAX_QUOTED_CHARACTERS);
        return Some(("document".to_owned(), text));
    }
    members.iter().find_map(|(name, rule)| {
        let value = document.get(name).filter(|value| !value.is_null())?;
        let below = |(path, value): (String, String)| (format!("{name}.{path}"), value);
        match (rule, value) {
            (MemberRule::Document(members), Value::Object(_)) => {
                first_violation(value, members).map(below)
            }
            (MemberRule::List(_), Value::Array(list)) if list.len() > MAX_LIST => {
                Some(((*name).to_owned(), pluralize(list.len(), "entry")))
            }
            (MemberRule::List(members), Value::Array(list)) => {
                let mut list = list.iter();
                list.find_map(|one| first_violation(one, members))
                    .map(below)
            }
            (rule, value) if rule.admits(value) => None,
            (_, value) => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                Some((
                    (*name).to_owned(),
                    escape_excerpt(&text, MAX_QUOTED_CHARACTERS),
                ))
            }
        }
    })
}

/// Parses a body as JSON; `None` if it is not JSON, or has far more objects and lists than a server of ours sends.
pub(super) fn parse_json(body: &[u8]) -> Option<Value> {
    match count_containers(body) <= MAX_CONTAINERS {
        true => serde_json::from_slice(body).ok(),
        false => None,
    }
}

/// Counts the objects and lists of a JSON document without parsing it.
fn count_containers(body: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Error of reading a body.
#[derive(Debug)]
pub(super) enum ResponseBodyError {
    /// The answer has more bytes than the limit.
    TooLarge,
    /// The answer comes more slowly than the least rate.
    TooSlow,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// Reads a body of at most `most` bytes into memory.
pub(super) async fn read_body(
    mut response: reqwest::Response,
    most: usize,
) -> Result<Vec<u8>, ResponseBodyError> {
    let mut bytes = Vec::new();
    stream_body(&mut response, most as u64, LEAST_RATE, |part| {
        bytes.extend_from_slice(part);
        Ok::<_, ResponseBodyError>(())
    })
    .await?;
    Ok(bytes)
}

/// Passes the chunks of a body to `take`, at most `most` bytes and no slower than `least`; returns their number.
pub(super) async fn stream_body<E: From<ResponseBodyError>>(
    response: &mut reqwest::Response,
    most: u64,
    least: LeastRate,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let announced = response.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > most) {
        return Err(ResponseBodyError::TooLarge.into());
    }
    let mut clock = tokio::time::interval(least.tick);
    // Time in which `take` is busy, as with a full pipe, is one tick at most: it is not the server's.
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate.
    clock.tick().await;
    let (mut read, mut due, mut ticks) = (0, least.bytes, 0);
    loop {
        let part = tokio::select! {
            biased;
            part = response.chunk() => part.map_err(ResponseBodyError::Broken)?,
            _ = clock.tick() => {
                ticks += 1;
                if ticks == least.ticks {
                    return Err(ResponseBodyError::TooSlow.into());
                }
                continue;
            }
        };
        let Some(part) = part else {
            return Ok(read);
        };
        read += part.len() as u64;
        if read > most {
            return Err(ResponseBodyError::TooLarge.into());
        }
        if read >= due {
            (due, ticks) = (read + least.bytes, 0);
        }
        take(&part)?;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Serves one answer whose body is a byte now and then, without an end; returns its URL.
    async fn serve_dripping_body() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            // Until the client is gone.
            while sent.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
                sent = stream.write_all(b"x").await;
            }
        });
        url
    }

    #[tokio::test]
    async fn a_body_that_drips_is_given_up() {
        let url = serve_dripping_body().await;
        let settings = || svc_outbound::client_builder().no_proxy();
        let (client, _) = svc_outbound::build_client(settings).unwrap();
        let least = LeastRate {
            bytes: 1 << 20,
            ticks: 20,
            tick: Duration::from_millis(1),
        };
        let mut response = client.get(url).send().await.unwrap();
        let take = |_: &[u8]| Ok::<_, ResponseBodyError>(());
        let read = stream_body(&mut response, u64::MAX, least, take).await;
        assert!(matches!(read, Err(ResponseBodyError::TooSlow)), "{read:?}");
    }

    #[test]
    fn an_array_is_no_document_and_a_list_has_a_bound() {
        let members: &[MemberConstraint] = &[("projects", MemberRule::List(PROJECT_MEMBERS))];
        let hidden =
            json!({ "projects": [["p1", "shop", "/home/victim/places", null, null, null]] });
        let (path, _) = first_violation(&hidden, members).unwrap();
        assert_eq!(path, "projects.document");
        assert!(first_violation(&json!([["p1"]]), members).is_some());
        let entries = |count| json!({ "projects": vec![json!({}); count] });
        assert!(first_violation(&entries(MAX_LIST), members).is_none());
        assert!(first_violation(&entries(MAX_LIST + 1), members).is_some());
    }

    #[test]
    fn an_answer_has_a_bound_of_objects() {
        for (text, count) in [
            (r#"{"a": [{}, [], 1]}"#, 4),
            (r#"{"{[": "[\"{\\"}"#, 1),
            (r#""[\\" [ "]"#, 1),
        ] {
            assert_eq!(count_containers(text.as_bytes()), count, "{text}");
        }
        let document = |count: usize| format!("[{}0]", "[],".repeat(count - 1));
        assert!(parse_json(document(MAX_CONTAINERS).as_bytes()).is_some());
        assert!(parse_json(document(MAX_CONTAINERS + 1).as_bytes()).is_none());
    }

    #[test]
    fn a_value_is_what_a_server_of_ours_gives_or_is_refused() {
        let digest = "0".repeat(64);
        for (rule, good, bad) in [
            (
                MemberRule::Id,
                &["01a1fc28-c57b-71f4-90db-2871ff5bd43a", "svcd_0", "1"][..],
                &["", "..", "a/b", "a b", "$(id)", "a\n", "ä", "-a"][..],
            ),
            (
                MemberRule::Slug,
                &["a", "a-b"],
                &["", ".", "..", "A", "-a", "a/b"],
            ),
            (
                MemberRule::Action,
                &["a", "a_1"],
                &["", "_a", "A", "a-b", "../a"],
            ),
            (MemberRule::Project, &["Web shop", "日本"], &["", "  "]),
            (
                MemberRule::Url,
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
                    "http://a/`id`",
                ],
            ),
            (
                MemberRule::Cursor,
                &["2026-11-20T12:00:00.000Z", "17"],
                &["", "$(id)", "a b", "a;b", "-a", "--server=evil.example"],
            ),
            (
                MemberRule::Target,
                &[
                    "01a1fc28-c57b/recent",
                    "01a1fc28-c57b",
                    "svc.render",
                    "a/b/c_1",
                ],
                &[
                    "", "/", "/a", "a/", "a//b", "../a", "a/..", "a/-b", "a b", "$(id)",
                ],
            ),
            (MemberRule::Digest, &[digest.as_str()], &["0", "G", ""]),
            (
                MemberRule::Word,
                &["markdown", "rolled_back"],
                &["", "A", "a/b"],
            ),
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
