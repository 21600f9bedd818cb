//! Settings of a project that a manifest may have: each is one text, and one that it leaves out is the server's to say.

use super::Manifest;
use super::plan::home_slug;
use super::remote_state::RemoteProjectState;
use crate::error::Result;

/// Name of the home page's setting.
pub(super) const HOME: &str = "home";
/// Name of the description's setting.
pub(super) const DESCRIPTION: &str = "description";
/// Name of the rooms' switch.
pub(super) const ROOMS: &str = "realtime";
/// Name of the switch of agents' tools.
pub(super) const TOOLS: &str = "agents";

/// All settings, in the order in which they are applied.
pub(super) const SETTINGS: [&str; 4] = [DESCRIPTION, HOME, ROOMS, TOOLS];

/// Value of a switch.
pub(super) fn switch_text(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// Returns what a manifest says of a setting; `None` if it leaves it out. A home page is named by the slug that it has on the server.
///
/// # Errors
/// When several pages of the server may be the home page.
pub(super) fn local_setting(
    manifest: &Manifest,
    state: Option<&RemoteProjectState>,
    name: &str,
) -> Result<Option<String>> {
    Ok(match name {
        HOME => {
            let Some(wanted) = &manifest.home else {
                return Ok(None);
            };
            let found = match state {
                Some(state) => home_slug(manifest, state, wanted)?,
                None => None,
            };
            // A page that is still to be made is wanted by its own name.
            Some(found.unwrap_or_else(|| wanted.clone()))
        }
        DESCRIPTION => manifest.description.clone(),
        ROOMS => manifest.realtime.map(switch_text),
        _ => manifest.agents.map(switch_text),
    })
}

/// Returns what a server says of a setting. Where there is no backend, its switches are off.
pub(super) fn remote_setting(state: Option<&RemoteProjectState>, name: &str) -> String {
    let project = state.map(|state| &state.project);
    let backend = state.and_then(|state| state.backend.as_ref());
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    match name {
        HOME => text(project.and_then(|project| project.home.as_ref())),
        DESCRIPTION => text(project.and_then(|project| project.description.as_ref())),
        ROOMS => switch_text(backend.is_some_and(|backend| backend.realtime.enabled)),
        _ => switch_text(backend.is_some_and(|backend| backend.agents)),
    }
}
