//! `svc compile-guest`: what a server starts to compile a guest. It is no command for people.

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
use rustix::process::{Signal, set_parent_process_death_signal};
use svc_sandbox::{OptimizationTier, compile_from_stdin};

/// Path of a process's own program, also when its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

#[derive(Debug, clap::Args)]
pub(super) struct CompileGuestCommand {
    /// How fast the code is to be
    #[arg(value_parser = parse_tier)]
    tier: OptimizationTier,
    /// Leave the other cores to others
    #[arg(long)]
    one_core: bool,
}

impl CompileGuestCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        // Ends with its server: then nobody waits for the code.
        #[cfg(target_os = "linux")]
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        compile_from_stdin(self.tier, self.one_core)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn parse_tier(name: &str) -> Result<OptimizationTier, &'static str> {
    let tier = OptimizationTier::ALL
        .into_iter()
        .find(|tier| tier.as_str() == name);
    tier.ok_or("there is no such tier")
}

/// Returns the program that compiles guests: this one.
pub(super) fn own_program() -> Option<PathBuf> {
    let own = PathBuf::from(OWN_PROGRAM);
    if own.exists() {
        return Some(own);
    }
    std::env::current_exe().ok().filter(|own| own.exists())
}
