//! Typed identifiers. Each is a UUIDv7, and an id of one kind never stands where another belongs.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::base32;
use crate::clock::{Clock, Timestamp};
use crate::random::{Random, RandomSourceError};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates a new id: ordered by time, with 74 random bits.
            pub fn new(clock: &Clock, random: &Random) -> Result<Self, RandomSourceError> {
                uuid_v7(clock, random).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                // Only the canonical spelling is accepted, so that an id has one URL.
                let written = text.len() == uuid::fmt::Hyphenated::LENGTH;
                Uuid::try_parse(if written { text } else { "" }).map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.to_string().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(
                value: rusqlite::types::ValueRef<'_>,
            ) -> rusqlite::types::FromSqlResult<Self> {
                let text = value.as_str()?;
                text.parse().map_err(rusqlite::types::FromSqlError::other)
            }
        }
    )+};
}

ids! {
    /// Id of a project's backend and of its one database.
    BackendId,
    /// Id of what answers at a slug: a quick share, or a project's frontend.
    DeploymentId,
    /// Id of an entry of a project's log.
    LogEntryId,
    /// Id of a project: its frontends and its backend.
    ProjectId,
    /// Id of a visitor's report about a deployment.
    ReportId,
    /// Id of a checkout session of a visitor.
    SessionId,
    /// Id of a revision of a frontend's content.
    RevisionId,
    /// Id of a workspace, which the operator's commands call a namespace.
    WorkspaceId,
}

impl LogEntryId {
    /// Creates the id of an entry: ordered by time, and by `number` among those of one millisecond.
    pub fn numbered(at: Timestamp, number: u64) -> Self {
        let millis = u64::try_from(at.0).unwrap_or(0);
        let mut tail = [0; 10];
        // Two bits of the third byte are the variant, so 62 bits hold the number.
        tail[2..].copy_from_slice(&(number & (u64::MAX >> 2)).to_be_bytes());
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid())
    }
}

impl ProjectId {
    /// The project of all quick shares. It has no owner.
    pub const QUICK_SHARES: Self = Self(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0000));
}

impl RevisionId {
    /// Returns the 26 characters that stand for the id in a host name.
    pub fn to_host_characters(self) -> String {
        base32::encode(self.0.as_u128())
    }

    /// Reads the characters of [`RevisionId::to_host_characters`]; `None` for any other text.
    pub fn from_host_characters(text: &str) -> Option<Self> {
        let id = Uuid::from_u128(base32::decode(text)?);
        (id.get_version_num() == 7).then_some(Self(id))
    }
}

/// Begin of the ids of visitors' files.
const FILE_ID_PREFIX: &str = "file_";

/// Creates the id of a visitor's file: ids ascend with time.
///
/// # Errors
/// The system has no randomness.
pub fn visitor_file_id(clock: &Clock, random: &Random) -> Result<String, RandomSourceError> {
    let characters = base32::encode(uuid_v7(clock, random)?.as_u128());
    Ok(format!("{FILE_ID_PREFIX}{characters}"))
}

/// Whether a text has the form of a visitor's file's id.
pub fn is_visitor_file_id(text: &str) -> bool {
    let characters = text.strip_prefix(FILE_ID_PREFIX);
    characters.is_some_and(|characters| base32::decode(characters).is_some())
}

/// Creates a UUID of version 7: ordered by time, with 74 random bits.
///
/// # Errors
/// The system has no randomness.
pub fn uuid_v7(clock: &Clock, random: &Random) -> Result<Uuid, RandomSourceError> {
    let millis = u64::try_from(clock.now().0).unwrap_or(0);
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random.bytes::<10>()?).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_seven_and_carry_the_time() {
        let clock = Clock::manual(Timestamp(1_795_262_400_000));
        let id = DeploymentId::new(&clock, &Random::system()).unwrap();
        assert_eq!(id.0.get_version_num(), 7);
        assert_eq!(id, id.to_string().parse().unwrap());
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(id, serde_json::from_str(&json).unwrap());
        assert!(serde_json::from_str::<DeploymentId>("\"mine\"").is_err());
        let revision = RevisionId(id.0);
        let characters = revision.to_host_characters();
        assert_eq!(characters.len(), 26);
        assert_eq!(
            RevisionId::from_host_characters(&characters),
            Some(revision)
        );
        let other = "0".repeat(26);
        assert_eq!(RevisionId::from_host_characters(&other), None);
        let [first, second] = [1, 2].map(|number| LogEntryId::numbered(Timestamp(5), number));
        assert_eq!(first.0.get_version_num(), 7);
        assert!(first < second && second < LogEntryId::numbered(Timestamp(6), 1));
        let seconds = id.0.get_timestamp().unwrap().to_unix().0;
        assert_eq!(seconds, 1_795_262_400);
    }
}
