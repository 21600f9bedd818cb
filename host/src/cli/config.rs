//! `svc config`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct ShowConfigCommand {
    #[command(flatten)]
    settings: Settings,
    /// A TOML file of settings
    #[arg(long, env = "SVC_CONFIG")]
    config: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long)]
    json: bool,
}

impl ShowConfigCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let settings = super::serve::merge_settings_file(self.settings, self.config)?;
        let listen = settings.listen();
        let config = settings.resolve(listen)?;
        let text = if self.json {
            serde_json::to_string(&config)?
        } else {
            toml::to_string(&config)?.trim_end().to_owned()
        };
        super::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
