//! Values that go into the sandbox and come out of it: plain Rust without the bindings.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::page::{
    MalformedSource, PageFooter, RenderSource, RenderedPage, RuntimeScript, SourcePosition,
    UndrawnDiagram,
};
use svc_sources::ContentType;

/// Budget of a call.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum BudgetKind {
    /// Units of work, which count instructions.
    Fuel,
    /// Bytes of the guest's memory.
    Memory,
    /// The wall time.
    Time,
    /// Depth of the guest's calls.
    Stack,
    /// Bytes of the finished page.
    PageBytes,
    /// Bytes of the source: of a diagram, or of SQL.
    SourceBytes,
    /// Nodes, edges and other parts of a diagram.
    Parts,
}

impl BudgetKind {
    /// Returns the name on the wire.
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

impl fmt::Display for BudgetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum RenderFailure {
    /// The source breaks the rules of its type: its author can repair it.
    #[error("{0}")]
    Malformed(MalformedSource),
    /// The source needs more than a call may use: its author can make it smaller.
    #[error("rendering it takes more than its budget of {0}")]
    Budget(BudgetKind),
    /// The serving renderer does not support the type: the operator can install one that does.
    #[error("it does not render {0}")]
    Unsupported(ContentType),
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

/// Purpose for which SQL is judged.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SqlPurpose {
    /// The one statement of a named action.
    Action,
    /// The one statement of an owner's query.
    Query,
    /// The script that creates a backend, with at least one table.
    Schema,
    /// A script of additive statements for an existing backend.
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
    /// Number of references, with every common table expression expanded.
    pub times: u32,
}

/// A statement that the gate allows.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AllowedStatement {
    /// Effect of the statement.
    pub kind: StatementKind,
    /// Named binds in order of first appearance, without the colon, each once.
    pub binds: Vec<String>,
    /// Whether running it answers rows.
    pub returns_rows: bool,
    /// The tables and views that it names, each once. Used while it is judged; not stored.
    #[serde(skip)]
    pub tables: Vec<NamedTable>,
    /// The view that it creates, in lower case; not stored.
    #[serde(skip)]
    pub view: Option<String>,
    /// Size of the statement: expressions, selects and tables read; not stored.
    #[serde(skip)]
    pub parts: u32,
    /// Start of the statement in the SQL, in bytes, on a character boundary.
    pub start: usize,
    /// End of the statement, in bytes, on a character boundary.
    pub end: usize,
}

/// A position in SQL.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SqlPosition {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes, from 0.
    pub offset: u32,
}

/// Reason why SQL is refused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SqlRefusal {
    /// One sentence for the author.
    pub reason: String,
    /// Number of the statement in the script, from 1.
    pub statement: u32,
    /// Position, if it is known.
    pub position: Option<SqlPosition>,
}

/// Verdict about SQL that the gate allows.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Statements in order.
    pub statements: Vec<AllowedStatement>,
    /// Digest of the gate.
    pub gate: GuestDigest,
}

/// Reason why no verdict allows the SQL.
#[derive(Debug, thiserror::Error)]
pub enum GateFailure {
    /// The SQL is not allowed: its author can change it.
    #[error("statement {}: {}", .0.statement, .0.reason)]
    Refused(SqlRefusal),
    /// Judging it takes more than a call may use: its author can make it smaller.
    #[error("judging it takes more than its budget of {0}")]
    Budget(BudgetKind),
    /// The gate is still being compiled: try again later.
    #[error("the gate is still being prepared")]
    Preparing,
    /// No thread was free within 5 s: try again later.
    #[error("the gate is busy")]
    Busy,
    /// The guest failed, which is our fault. The text is for the log and never for a client.
    #[error("the gate guest failed: {0:#}")]
    Broken(anyhow::Error),
}

/// World of a guest, which is its purpose.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Renders pages and draws diagrams.
    Render,
    /// Judges SQL.
    Gate,
}

impl World {
    /// Both worlds, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Render, Self::Gate];

    /// Returns the name on the command line, in the log, and of the folder.
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

/// SHA-256 of a component: it identifies the guest that made a verdict or a page.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct GuestDigest([u8; 32]);

impl GuestDigest {
    /// Computes the digest of a component.
    #[must_use]
    pub fn of(component: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, component);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Parses 64 lower-case hexadecimal digits.
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

    /// Returns the digest of 32 stored bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
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
    /// Writes 64 lower-case hexadecimal digits.
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
