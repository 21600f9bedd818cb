//! `svc key create|list|revoke`.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

use super::installation::{Installation, OperationAnswer};
use crate::workspaces::{MAX_KEY_SECONDS, NewKeyOptions, Role};

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOperation {
    /// Add a key to a namespace and print its credential, which is shown this once
    Create {
        /// The namespace
        namespace: String,
        /// Role of the key in the namespace
        #[arg(long, value_enum, default_value = "editor")]
        role: Role,
        /// Number of seconds after which the key ends, up to a year; without it the key ends when it is revoked
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_KEY_SECONDS))]
        expires_in: Option<u64>,
    },
    /// List the keys of a namespace
    List {
        /// The namespace
        namespace: String,
    },
    /// Revoke a key: the next request with it is refused
    Revoke {
        /// The namespace
        namespace: String,
        /// The key's id, the second part of its credential
        key_id: String,
    },
}

impl KeyOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::Create {
                namespace,
                role,
                expires_in,
            } => {
                let wanted = NewKeyOptions {
                    role,
                    note: None,
                    expires_in: expires_in.and_then(|seconds| i64::try_from(seconds).ok()),
                };
                let made = at.workspaces().create_key(&namespace, wanted).await?;
                let role = role.as_str();
                let command = format!("key create {namespace} --role {role}: {}", made.key_id);
                Ok(OperationAnswer::new(&made, &made.credential)?.logged_as(command))
            }
            Self::List { namespace } => list(at, &namespace).await,
            Self::Revoke { namespace, key_id } => {
                at.workspaces().revoke_key(&namespace, &key_id).await?;
                let document = serde_json::json!({ "key_id": key_id, "revoked": true });
                let answer = OperationAnswer::new(&document, format!("revoked {key_id}"))?;
                Ok(answer.logged_as(format!("key revoke {namespace} {key_id}")))
            }
        }
    }
}

async fn list(at: &Installation, namespace: &str) -> anyhow::Result<OperationAnswer> {
    let keys = at.workspaces().keys(namespace).await?;
    let now = at.clock.now();
    let mut text = String::new();
    for key in &keys {
        let end = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) if at <= now => format!("ended {at}"),
            (None, Some(at)) => format!("ends {at}"),
            (None, None) => "for good".to_owned(),
        };
        let used = key
            .last_used_at
            .map_or_else(|| "never used".to_owned(), |at| format!("last used {at}"));
        let (id, role, made) = (&key.key_id, key.role.as_str(), key.created_at);
        writeln!(text, "{id}\t{role}\tmade {made}\t{end}\t{used}")?;
    }
    OperationAnswer::new(&serde_json::json!({ "keys": keys }), text)
}
