//! `svc deployment disable|enable`.

use std::process::ExitCode;

use anyhow::bail;

use super::Operate;
use crate::clock::Clock;
use crate::deployments::operate;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Deployment {
    /// Take a deployment down: every route of its slug answers 403
    Disable {
        /// Where it answers
        slug: String,
        #[command(flatten)]
        operate: Operate,
    },
    /// Put a deployment back
    Enable {
        /// Where it answers
        slug: String,
        #[command(flatten)]
        operate: Operate,
    },
}

impl Deployment {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (slug, disabled, command) = match self {
            Self::Disable { slug, operate } => (slug, true, operate),
            Self::Enable { slug, operate } => (slug, false, operate),
        };
        let control = command.control()?;
        if !operate::set_disabled(&control, &Clock::system(), &slug, disabled).await? {
            bail!("nothing is deployed at `{slug}`");
        }
        let word = if disabled { "disabled" } else { "enabled" };
        let document = serde_json::json!({ "slug": slug, "disabled": disabled });
        command.answer(&document, &format!("{word} {slug}"))
    }
}
