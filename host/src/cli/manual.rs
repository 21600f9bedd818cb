//! `svc completions` and `svc man`, generated from the definitions of the commands.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::Shell;

use super::commands;
use crate::client;

#[derive(Debug, clap::Args)]
pub(super) struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(super) struct ManCommand {
    /// The directory for the pages; it is made if need be
    directory: PathBuf,
}

impl CompletionsCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut commands(), "svc", &mut script);
        super::print(String::from_utf8(script)?.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl ManCommand {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut whole = commands().disable_help_subcommand(true);
        whole.build();
        let mut pages = Vec::new();
        add_pages(whole, &mut pages)?;
        Ok(client::write_files(&self.directory, &pages))
    }
}

/// Adds the page of a command, with its file's name, after those of its subcommands.
fn add_pages(command: clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    for below in shown.cloned() {
        add_pages(below, pages)?;
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    Ok(())
}
