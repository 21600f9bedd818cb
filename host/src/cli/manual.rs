//! `svc completions` and `svc man`, generated from the definitions of the commands.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;

use super::commands;

#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct Man {
    /// The directory for the pages; it is made if need be
    directory: PathBuf,
}

impl Completions {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut commands(), "svc", &mut script);
        super::print(String::from_utf8(script)?.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Man {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let shown = self.directory.display();
        std::fs::create_dir_all(&self.directory).with_context(|| format!("making {shown}"))?;
        clap_mangen::generate_to(commands(), &self.directory)
            .with_context(|| format!("writing to {shown}"))?;
        Ok(ExitCode::SUCCESS)
    }
}
