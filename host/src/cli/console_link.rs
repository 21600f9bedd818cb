//! The link into the console that a server for trying things out prints at its start.

use anyhow::Context as _;

use crate::console::login_link;
use crate::server::Server;
use crate::workspaces::Role;

/// Prints a link into the console as an owner of a workspace, which is valid once and until the server ends. Without a console nothing
/// is printed.
pub(super) async fn print_console_link(server: &Server, workspace: &str) -> anyhow::Result<()> {
    let app = server.app();
    let Some(console_url) = &app.config.console_url else {
        return Ok(());
    };
    let making = app
        .workspaces
        .create_console_code(workspace, Role::Owner, None);
    let made = making.await.context("making a link into the console")?;
    let link = login_link(console_url, &made.code);
    super::print_note(&format!("  Console: {link}"));
    Ok(())
}
