//! What a deployment is.

use crate::clock::Timestamp;
use crate::content::Digest;
use crate::ids::{BackendId, DeploymentId};
use crate::sandbox::ContentType;

/// The longest slug, in characters.
pub const SLUG_LENGTH: usize = 63;
/// Slugs that the service keeps for itself.
const RESERVED: [&str; 8] = [
    "api", "mcp", "auth", "assets", "healthz", "readyz", "metrics", "problems",
];

/// Something published that answers at a slug.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Its identity, which a slug's next owner does not share.
    pub id: DeploymentId,
    /// Where it answers.
    pub slug: String,
    /// What its source is written in.
    pub content_type: ContentType,
    /// The page's title; empty where there is none, and for a one-time share, whose title burns with it.
    pub title: String,
    /// Whether its first reader is its last.
    pub one_time: bool,
    /// Argon2id in PHC form.
    pub password_hash: Option<String>,
    /// Its source in the content store; a one-time share has none there.
    pub source: Option<Digest>,
    /// Its finished page in the content store; a one-time share has none there.
    pub artifact: Option<Digest>,
    /// The host label of its project; a quick share has none.
    pub host_label: Option<String>,
    /// The live backend that its page was published with.
    pub backend: Option<BackendId>,
    /// Whether the operator has taken it down.
    pub disabled: bool,
    /// When it was published.
    pub created_at: Timestamp,
    /// When it stops to resolve.
    pub expires_at: Option<Timestamp>,
}

impl Deployment {
    /// Whether it still answers at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| at > now)
    }
}

/// A page's title as answers have it.
pub fn shown_title(title: &str) -> String {
    if title.is_empty() { "Untitled" } else { title }.to_owned()
}

/// Whether `text` can be a slug: `^[a-z0-9]([a-z0-9\-]*[a-z0-9])?$`, 63 characters at most.
pub fn is_slug(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.len() <= SLUG_LENGTH
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

/// Whether the service keeps a slug for itself.
pub fn is_reserved(slug: &str) -> bool {
    RESERVED.contains(&slug)
}

/// `slug` with a suffix, cut so that both fit.
pub fn with_suffix(slug: &str, suffix: &str) -> String {
    let room = SLUG_LENGTH - suffix.len() - 1;
    let stem = slug
        .get(..room.min(slug.len()))
        .unwrap_or(slug)
        .trim_end_matches('-');
    format!("{stem}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        let long = "a".repeat(63);
        for good in ["a", "7", "a-b", "a--b", "x1", &long] {
            assert!(is_slug(good), "{good}");
        }
        let longer = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "ä", "a b", &longer] {
            assert!(!is_slug(bad), "{bad}");
        }
    }

    #[test]
    fn suffixes_fit() {
        assert_eq!(with_suffix("notes", "2"), "notes-2");
        let long = with_suffix(&"a".repeat(63), "23");
        assert_eq!(long.len(), 63);
        assert!(is_slug(&long));
        assert!(is_slug(&with_suffix(
            &format!("{}-b", "a".repeat(59)),
            "23"
        )));
    }
}
