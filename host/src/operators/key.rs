//! `svc key create|list|revoke`.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

use super::installation::{Installation, OperationAnswer};

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOperation {
    /// Add a key to a namespace and print its credential, which is shown this once
    Create {
        /// The namespace
        namespace: String,
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
            Self::Create { namespace } => {
                let made = at.workspaces().create_key(&namespace).await?;
                let command = format!("key create {namespace}: {}", made.key_id);
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
    let mut text = String::new();
    for key in &keys {
        let state = match (key.revoked_at, key.last_used_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("last used {at}"),
            (None, None) => "never used".to_owned(),
        };
        writeln!(text, "{}\tmade {}\t{state}", key.key_id, key.created_at)?;
    }
    OperationAnswer::new(&serde_json::json!({ "keys": keys }), text)
}
