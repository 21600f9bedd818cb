//! Model of passkeys and the accounts that have them.

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;

/// Time for which a challenge is valid, in milliseconds.
pub(in crate::visitors) const CHALLENGE_LIFETIME_MS: i64 = 300_000;
/// Maximum number of passkeys of an account.
pub(in crate::visitors) const MAX_PASSKEYS: usize = 20;

/// Account that passkeys belong to. A visitor of each project may be linked to it; no project learns of another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::visitors) struct PasskeyAccount {
    /// Random bytes in base64url, which devices keep beside the key. The subject of its visitors.
    pub handle: String,
    /// Name that the visitor gave.
    pub name: String,
}

/// Public half of a passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::visitors) struct Passkey {
    /// Identifier, by which a device names it.
    pub credential_id: Vec<u8>,
    /// Key in the form of COSE.
    pub public_key: Vec<u8>,
    /// Number of the key's algorithm in COSE.
    pub algorithm: i32,
    /// Number of signatures, as the device counts them; 0 where it does not.
    pub counter: u32,
}

/// Passkey, as its visitor sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::visitors) struct ListedPasskey {
    pub passkey: Passkey,
    pub created_at: Timestamp,
}

/// Part of a passkey in a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyOfSignIn {
    /// The passkey with this id is known: it must be so when the sign-in is completed, too.
    Known(Vec<u8>),
    /// The account is made with this first passkey, when the sign-in is completed.
    New(NewPasskey),
}

/// First passkey of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPasskey(pub(in crate::visitors) Passkey);

/// Challenge of a page, which is sealed: only used ones are remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::visitors) struct PasskeyChallenge {
    /// Id of the sign-in, or of the visit of an account, that it belongs to.
    #[serde(rename = "o")]
    pub owner: String,
    /// Bytes that the device signs.
    #[serde(rename = "c")]
    pub bytes: [u8; 32],
    /// Handle of the account that a passkey is made for; none where one is asked for.
    #[serde(rename = "h")]
    pub handle: Option<String>,
    /// When it was made, in milliseconds since the epoch.
    #[serde(rename = "t")]
    pub at: i64,
    /// Process that has made it, and knows whether it was used.
    #[serde(rename = "p")]
    pub process: [u8; 16],
}

/// Result of the removal of a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::visitors) enum PasskeyRemoval {
    /// The passkey is gone.
    Gone,
    /// The passkey is the only one: nobody could sign in any more.
    Last,
}
