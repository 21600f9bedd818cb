//! `svc cluster`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::OperatorArgs;
use crate::cluster::found;
use crate::config::Settings;
use svc_base::clock::Clock;
use svc_base::random::Random;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ClusterCommand {
    /// Bring an installation, or an empty one, into an empty ledger and an empty bucket
    Found {
        /// The TOML file of settings that has the cluster
        #[arg(long, env = "SVC_CONFIG")]
        config: Option<PathBuf>,
        #[command(flatten)]
        args: OperatorArgs,
    },
}

impl ClusterCommand {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self::Found { config, args } = self;
        let settings = Settings {
            data: args.data.clone(),
            ..Settings::default()
        };
        let settings = super::serve::merge_settings_file(settings, config)?;
        let listen = settings.listen();
        let config = settings.resolve(listen)?;
        let args = OperatorArgs {
            data: Some(config.data.clone()),
            ..args
        };
        found::require_settings(&config)?;
        args.installation_or_new()?;
        super::raise_file_limit();
        let (clock, random) = (Clock::system(), Random::system());
        let founded = Box::pin(found::run(&config, &clock, &random)).await?;
        args.print_answer(&founded, &founded.text())
    }
}
