//! The values that go into the sandbox and come out of it: plain Rust, free of the bindings.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::page::{
    Foot, Malformed, RenderedPage, RuntimeScript, Source, SourcePosition, UndrawnDiagram,
};
use svc_sources::ContentType;

/// A budget that a call can run out of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Budget {
    /// The units of work, which count instructions.
    Fuel,
    /// The bytes of the guest's memory.
    Memory,
    /// The wall time.
    Time,
    /// The depth of the guest's calls.
    Stack,
    /// The bytes of the finished page.
    PageBytes,
    /// The bytes of the source: of a diagram, or of SQL.
    SourceBytes,
    /// The nodes, edges and other parts of a diagram.
    Parts,
}

impl Budget {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Time => "time",
            Self::Stack => "stack",
            Self::PageBytes => "page_bytes",
            Self::SourceBytes => "source_bytes",
            Self::Parts => "parts",
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum RenderFailure {
    /// The source breaks the rules of its type: its author's to repair.
    #[error("{0}")]
    Malformed(Malformed),
    /// The source needs more than a call may use: its author's to shrink.
    #[error("rendering it takes more than its budget of {0}")]
    Budget(Budget),
    /// The renderer that serves does not know the type: for the operator to install one that does.
    #[error("it does not render {0}")]
    Unsupported(ContentType),
    /// The renderer is still being compiled: to be tried again.
    #[error("the renderer is still being prepared")]
    Preparing,
    /// No thread was free within 5 s: to be tried again.
    #[error("the renderer is busy")]
    Busy,
    /// The guest failed: ours to repair. The text is for the log and never for a client.
    #[error("the render guest failed: {0:#}")]
    Broken(anyhow::Error),
}

/// Why SQL is judged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// The one statement of a named action.
    Action,
    /// The one statement of an owner's query.
    Query,
    /// The script that makes a backend, with at least one table.
    Schema,
    /// A script of additive statements for a backend that is there.
    Migration,
}

/// Effect of a statement.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatementKind {
    /// Answers rows and changes nothing.
    Read,
    /// Changes rows.
    Write,
    /// Changes the schema.
    Migration,
}

/// A table or view that a statement names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedTable {
    /// Name in lower case.
    pub name: String,
    /// How often, once every common table expression stands wherever it is named.
    pub times: u32,
}

/// A statement that the gate allows.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Statement {
    /// Effect of the statement.
    pub kind: StatementKind,
    /// Named binds in order of first appearance, without the colon, each once.
    pub binds: Vec<String>,
    /// Whether running it answers rows.
    pub returns_rows: bool,
    /// The tables and views that it names, each once. Of use when it is judged; not kept.
    #[serde(skip)]
    pub tables: Vec<NamedTable>,
    /// The view that it makes, in lower case; likewise.
    #[serde(skip)]
    pub view: Option<String>,
    /// How much it stands for: expressions, selects and what they read; likewise.
    #[serde(skip)]
    pub parts: u32,
    /// Where it begins in the SQL, in bytes, on a character's boundary.
    pub start: usize,
    /// Where it ends, likewise.
    pub end: usize,
}

/// A place in SQL.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SqlPosition {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// From 0, in bytes.
    pub offset: u32,
}

/// Why SQL is not allowed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Refusal {
    /// One sentence for its author.
    pub reason: String,
    /// Which statement of the script, from 1.
    pub statement: u32,
    /// Where, if that is known.
    pub position: Option<SqlPosition>,
}

/// Verdict of the gate about SQL that it allows.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Statements in order.
    pub statements: Vec<Statement>,
    /// Which gate judged.
    pub gate: GuestDigest,
}

/// Why there is no verdict that allows.
#[derive(Debug, thiserror::Error)]
pub enum GateFailure {
    /// The SQL is not allowed: its author's to change.
    #[error("statement {}: {}", .0.statement, .0.reason)]
    Refused(Refusal),
    /// Judging it takes more than a call may use: its author's to shrink.
    #[error("judging it takes more than its budget of {0}")]
    Budget(Budget),
    /// The gate is still being compiled: to be tried again.
    #[error("the gate is still being prepared")]
    Preparing,
    /// No thread was free within 5 s: to be tried again.
    #[error("the gate is busy")]
    Busy,
    /// The guest failed: ours to repair. The text is for the log and never for a client.
    #[error("the gate guest failed: {0:#}")]
    Broken(anyhow::Error),
}

/// Purpose of a guest.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Renders pages and draws diagrams.
    Render,
    /// Judges SQL.
    Gate,
}

impl World {
    /// Both, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Render, Self::Gate];

    /// The name on the command line, in the log, and of its folder.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::Gate => "gate",
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The SHA-256 of a component: which guest made a verdict or a page.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct GuestDigest([u8; 32]);

impl GuestDigest {
    /// The digest of a component's bytes.
    #[must_use]
    pub fn of(component: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, component);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits =
            text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate().filter(|_| digits) {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        digits.then_some(Self(bytes))
    }

    /// The digest of these 32 bytes, as they were kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Serialize for GuestDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GuestDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("a digest has 64 hexadecimal digits"))
    }
}

impl fmt::Display for GuestDigest {
    /// 64 lower-case hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for GuestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_sixty_four_digits() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(GuestDigest::of(b"").to_string(), empty);
        assert_eq!(GuestDigest::from_hex(empty), Some(GuestDigest::of(b"")));
        for other in [&empty[1..], &empty.to_uppercase(), &"é".repeat(32)] {
            assert_eq!(GuestDigest::from_hex(other), None, "{other}");
        }
    }
}
