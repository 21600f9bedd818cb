//! `svc key create|list|revoke`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::Operate;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Key {
    /// Add a key to a namespace and print its credential, which is shown this once
    Create {
        /// The namespace
        namespace: String,
        #[command(flatten)]
        operate: Operate,
    },
    /// List the keys of a namespace
    List {
        /// The namespace
        namespace: String,
        #[command(flatten)]
        operate: Operate,
    },
    /// Revoke a key: the next request with it is refused
    Revoke {
        /// The namespace
        namespace: String,
        /// The key's id, the second part of its credential
        key_id: String,
        #[command(flatten)]
        operate: Operate,
    },
}

impl Key {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Create { namespace, operate } => {
                let control = operate.control()?;
                let made = operate.workspaces(&control).create_key(&namespace).await?;
                let command = format!("key create {namespace}: {}", made.key_id);
                operate.note(&control, command).await;
                operate.answer(&made, &made.credential)
            }
            Self::List { namespace, operate } => {
                let control = operate.control()?;
                let keys = operate.workspaces(&control).keys(&namespace).await?;
                let mut text = String::new();
                for key in &keys {
                    let state = match (key.revoked_at, key.last_used_at) {
                        (Some(at), _) => format!("revoked {at}"),
                        (None, Some(at)) => format!("last used {at}"),
                        (None, None) => "never used".to_owned(),
                    };
                    writeln!(text, "{}\tmade {}\t{state}", key.key_id, key.created_at)?;
                }
                operate.answer(&serde_json::json!({ "keys": keys }), &text)
            }
            Self::Revoke {
                namespace,
                key_id,
                operate,
            } => {
                let control = operate.control()?;
                let workspaces = operate.workspaces(&control);
                workspaces.revoke_key(&namespace, &key_id).await?;
                operate
                    .note(&control, format!("key revoke {namespace} {key_id}"))
                    .await;
                let document = serde_json::json!({ "key_id": key_id, "revoked": true });
                operate.answer(&document, &format!("revoked {key_id}"))
            }
        }
    }
}
