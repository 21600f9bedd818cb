//! Notes of a pull: what the server has otherwise, and what the author of the folder has to change.

use super::super::meetings::Meetings;
use super::super::parts::{Comparable as _, PriceTerms};
use super::super::remote_state::RemoteProjectState;
use super::super::settings::{SETTINGS, local_setting, remote_setting};
use super::super::{Manifest, sql_files};
use super::PullPlan;
use crate::error::Result;
use crate::output::escape_excerpt;

/// The most characters of a setting in a note.
const MAX_SETTING: usize = 200;

impl PullPlan {
    /// Notes what differs, and what no file of the server replaces: settings, titles, prices, and what has ended.
    pub(super) fn note_differences(
        &mut self,
        manifest: &Manifest,
        state: &RemoteProjectState,
        meetings: &Meetings,
    ) -> Result<()> {
        self.note_settings(manifest, state)?;
        self.note_pages(manifest, state, meetings)?;
        self.note_gone_actions(manifest, state, meetings)?;
        self.note_prices(manifest, state);
        Ok(())
    }

    /// Notes the settings that differ from those of the manifest, which keeps what its author wrote.
    fn note_settings(&mut self, manifest: &Manifest, state: &RemoteProjectState) -> Result<()> {
        for name in SETTINGS {
            let Some(local) = local_setting(manifest, Some(state), name)? else {
                continue;
            };
            let there = remote_setting(Some(state), name);
            if local != there {
                self.notes.push(format!(
                    "`{name}` differs from svc.toml: the server has `{}`. Change it in svc.toml.",
                    escape_excerpt(&there, MAX_SETTING)
                ));
            }
        }
        Ok(())
    }

    /// Notes the titles that differ from those of the manifest, and the pages that have ended on the server.
    fn note_pages(
        &mut self,
        manifest: &Manifest,
        state: &RemoteProjectState,
        meetings: &Meetings,
    ) -> Result<()> {
        for (slug, entry) in &manifest.pages {
            let is_other = |slug: &str| manifest.pages.contains_key(slug);
            let frontend = state.find_frontend_by_slug(slug, is_other)?;
            match (frontend, entry.title()) {
                (Some(frontend), Some(title)) if frontend.title != title => {
                    self.notes.push(format!(
                        "The title of the page `{slug}` differs from svc.toml: the server has `{}`. Change it in svc.toml.",
                        escape_excerpt(&frontend.title, MAX_SETTING)
                    ));
                }
                (None, _) if meetings.has_met_page(slug) => {
                    let place = format!(
                        "its line from svc.toml, or change {}",
                        entry.path().display()
                    );
                    self.notes.push(ended_note("page", slug, &place));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes the actions of the folder that have ended on the server.
    fn note_gone_actions(
        &mut self,
        manifest: &Manifest,
        state: &RemoteProjectState,
        meetings: &Meetings,
    ) -> Result<()> {
        for file in sql_files(&self.folder, manifest.actions(), false)? {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            if state.action(&name).is_none() && meetings.has_met_action(&name) {
                let place = format!(
                    "{}, or change it",
                    self.folder.display_path(&file).display()
                );
                self.notes.push(ended_note("action", &name, &place));
            }
        }
        Ok(())
    }

    /// Notes the prices that differ from those of the manifest, which keeps what its author wrote.
    fn note_prices(&mut self, manifest: &Manifest, state: &RemoteProjectState) {
        for price in &manifest.prices {
            let local = PriceTerms::of_folder(price);
            let Some(remote) = state.price(&price.key) else {
                continue;
            };
            let there = PriceTerms::of_server(remote);
            if there.beside(Some(&local)) != local {
                self.notes.push(format!(
                    "The price `{}` differs from svc.toml: the server has {} {} for {}, {}. Change it in svc.toml.",
                    price.key,
                    there.amount,
                    there.currency,
                    there.product,
                    there.label
                ));
            }
        }
    }
}

/// Note about a part that somebody has ended. `place` says what to remove, or what to change so that the folder's counts.
fn ended_note(kind: &str, name: &str, place: &str) -> String {
    format!(
        "The {kind} `{name}` is not on the server any more: remove {place} and run `svc apply --force` to make it anew."
    )
}
