//! Meetings of a folder and a project: a file of the folder that says what both had, which `svc apply` and `svc pull` write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::merge::{Decision, LastMeeting, decide, needs_history};
use super::parts::{ActionText, Comparable, PageText, PriceTerms};
use super::remote_state::{RemoteFrontend, RemoteProjectState};
use super::settings::{SETTINGS, local_setting, remote_setting};
use super::{AcceptedOwners, ProjectFolder};
use crate::error::Result;
use crate::files::DirectoryHandle;
use svc_base::names::is_uuid;

/// Folder of the files.
const DIRECTORY: &str = ".svc";
/// Tells Git to leave the folder out.
pub(crate) const IGNORE_FILE: (&str, &str) = (".svc/.gitignore", "*\n");
/// Version of the file's form. A file of another one is not read.
const VERSION: u32 = 1;
/// The most bytes of a file.
const MAX_BYTES: u64 = 16 << 20;
/// The most characters of a host in a file's name.
const MAX_HOST: usize = 150;

/// A part as both had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MetPart<T> {
    /// Text that both had; absent where they have never had the same.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    both: Option<T>,
    /// Text that the folder was about to release: if the server has it, the release was made, and only its answer was lost.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    sent: Option<T>,
    /// Slug of a page on the server, which may have a suffix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slug: Option<String>,
    /// Revision of a page, version of an action or id of a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Id of a page on the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

/// Parts of one kind by their names.
pub(super) type MetParts<T> = BTreeMap<String, MetPart<T>>;

/// All that a folder and a project both had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Meetings {
    version: u32,
    server: String,
    project: String,
    /// Whether they have met; a file without that has only what was about to be released.
    #[serde(default)]
    has_met: bool,
    #[serde(default)]
    pub(super) pages: MetParts<PageText>,
    #[serde(default)]
    pub(super) actions: MetParts<ActionText>,
    #[serde(default)]
    pub(super) prices: MetParts<PriceTerms>,
    #[serde(default)]
    pub(super) settings: MetParts<String>,
}

/// A decision, or that the history of the part is needed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartDecision {
    Made(Decision),
    NeedsHistory,
}

impl<T> MetPart<T> {
    const fn new() -> Self {
        Self {
            both: None,
            sent: None,
            slug: None,
            version: None,
            id: None,
        }
    }
}

impl MetPart<PageText> {
    /// Lists the digests of the texts that the folder has released, or was about to.
    pub(super) fn digests(&self) -> impl Iterator<Item = &str> {
        let texts = self.both.iter().chain(&self.sent);
        texts.map(|text| text.sha256.as_str())
    }
}

impl Meetings {
    fn new(server: &Url, project: &str) -> Self {
        Self {
            version: VERSION,
            server: server.to_string(),
            project: project.to_owned(),
            ..Self::default()
        }
    }

    /// Meetings with a server that only the folder is for: all its actions are the folder's.
    pub(super) fn of_own_server(state: &RemoteProjectState) -> Self {
        let mut meetings = Self {
            has_met: true,
            ..Self::default()
        };
        for action in state.backend.iter().flat_map(|backend| &backend.actions) {
            let text = ActionText::of_server(action);
            meet_part(
                &mut meetings.actions,
                &action.name,
                (text.clone(), text),
                None,
            );
        }
        meetings
    }

    /// Reads the file of a project, with a note where it cannot be used. It is empty then, and where there is none.
    pub(super) fn read(
        folder: &DirectoryHandle,
        owners: AcceptedOwners,
        server: &Url,
        project: &str,
    ) -> (Self, Option<String>) {
        let Some(name) = file_name(server, project) else {
            return (Self::new(server, project), None);
        };
        let shown = folder.display_path(&name);
        let ignored = |why: &str| {
            let note = format!(
                "{} is not used: {why}. Without it, whatever the folder has counts as its own change, unless the server had it earlier.",
                shown.display()
            );
            (Self::new(server, project), Some(note))
        };
        let read = match folder.read_with_owner(&name, MAX_BYTES) {
            Ok(None) => return (Self::new(server, project), None),
            Ok(Some(read)) => read,
            Err(failure) => return ignored(failure.detail().trim_end_matches('.')),
        };
        let (bytes, owner) = read;
        if owners.check(owner, &shown, "").is_err() {
            return ignored("it belongs to another user");
        }
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(found)
                if found.version == VERSION
                    && found.server == server.as_str()
                    && found.project == project =>
            {
                (found, None)
            }
            Ok(_) => ignored("it is of another server or project, or of another version of svc"),
            Err(_) => ignored("it is not whole"),
        }
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub(super) fn write(&self, folder: &DirectoryHandle) -> Result<()> {
        let server = Url::parse(&self.server).ok();
        let Some(name) = server.and_then(|server| file_name(&server, &self.project)) else {
            return Ok(());
        };
        let (ignore, text) = IGNORE_FILE;
        if !folder.exists(Path::new(ignore))? {
            folder.write(Path::new(ignore), text.as_bytes(), true)?;
        }
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        folder.write(&name, &bytes, true)
    }

    /// Whether the folder and the server have both had this page.
    pub(super) fn has_met_page(&self, slug: &str) -> bool {
        self.pages.get(slug).is_some_and(|met| met.both.is_some())
    }

    /// Whether the folder and the server have both had this action.
    pub(super) fn has_met_action(&self, name: &str) -> bool {
        self.actions.get(name).is_some_and(|met| met.both.is_some())
    }

    /// Whether these are the meetings with a project.
    pub(super) fn is_of(&self, project: &str) -> bool {
        self.project == project
    }

    /// Decides about a part by what the folder and the server have.
    pub(super) fn decide<T: Comparable>(
        &self,
        met: Option<&MetPart<T>>,
        local: Option<&T>,
        remote: Option<&T>,
        earlier: Option<&[T]>,
    ) -> PartDecision {
        let remote = remote.map(|part| part.beside(local));
        // A release whose answer was lost is a meeting, too.
        let sent = met.and_then(|met| met.sent.as_ref());
        let sent = sent.map(|part| part.beside(local));
        let both = met.and_then(|met| met.both.as_ref());
        let both = match sent.is_some() && sent == remote {
            true => sent,
            false => both.map(|part| part.beside(local)),
        };
        let last = match self.has_met || both.is_some() {
            true => LastMeeting::With(both.as_ref()),
            false => LastMeeting::Unknown,
        };
        let Some(earlier) = earlier else {
            if needs_history(local, last, remote.as_ref()) {
                return PartDecision::NeedsHistory;
            }
            return PartDecision::Made(decide(local, last, remote.as_ref(), &[]));
        };
        let earlier: Vec<_> = earlier.iter().map(|part| part.beside(local)).collect();
        PartDecision::Made(decide(local, last, remote.as_ref(), &earlier))
    }

    /// Writes down everything that both have now. What differs keeps its earlier entry.
    pub(super) fn meet(
        &mut self,
        folder: &ProjectFolder,
        state: &RemoteProjectState,
    ) -> Result<()> {
        self.has_met = true;
        for page in &folder.pages {
            if let Some(frontend) = state.find_frontend(page, folder)? {
                let texts = (PageText::of_folder(page), PageText::of_server(frontend));
                self.meet_page(&page.slug, frontend, texts);
            }
        }
        for action in &folder.actions {
            if let Some(remote) = state.action(&action.name) {
                let texts = (ActionText::of_folder(action), ActionText::of_server(remote));
                let version = remote.version.to_string();
                meet_part(&mut self.actions, &action.name, texts, Some(version));
            }
        }
        for price in &folder.manifest.prices {
            if let Some(remote) = state.price(&price.key) {
                let terms = (PriceTerms::of_folder(price), PriceTerms::of_server(remote));
                meet_part(&mut self.prices, &price.key, terms, Some(remote.id.clone()));
            }
        }
        for name in SETTINGS {
            let local = local_setting(&folder.manifest, Some(state), name)?;
            if let Some(local) = local {
                let remote = remote_setting(Some(state), name);
                meet_part(&mut self.settings, name, (local, remote), None);
            }
        }
        self.forget(folder, state);
        Ok(())
    }

    /// Writes a page down if the folder and the server have the same.
    fn meet_page(&mut self, slug: &str, frontend: &RemoteFrontend, texts: (PageText, PageText)) {
        let version = frontend.active_revision_id.clone();
        if let Some(part) = meet_part(&mut self.pages, slug, texts, version) {
            part.slug = Some(frontend.slug.clone());
            part.id = Some(frontend.id.clone()).filter(|id| !id.is_empty());
        }
    }

    /// Writes down the sites that a pull has brought. Files that only the folder has stay there, and are its own change.
    pub(super) fn take_sites(
        &mut self,
        folder: &ProjectFolder,
        state: &RemoteProjectState,
    ) -> Result<()> {
        for page in folder.pages.iter().filter(|page| page.site().is_some()) {
            let found = state.find_frontend(page, folder)?;
            let site = found.filter(|there| there.frontend_type == page.frontend_type());
            if let Some(frontend) = site {
                let text = PageText::of_server(frontend);
                self.meet_page(&page.slug, frontend, (text.clone(), text));
            }
        }
        Ok(())
    }

    /// Writes down the actions that a pull has brought. Their files may have the defaults written in another way than the server has them.
    pub(super) fn take_actions(&mut self, folder: &ProjectFolder, state: &RemoteProjectState) {
        for action in &folder.actions {
            if let Some(remote) = state.action(&action.name) {
                let text = ActionText::of_server(remote);
                let version = remote.version.to_string();
                let texts = (text.clone(), text);
                meet_part(&mut self.actions, &action.name, texts, Some(version));
            }
        }
    }

    /// Forgets the parts that neither has any more.
    fn forget(&mut self, folder: &ProjectFolder, state: &RemoteProjectState) {
        self.pages.retain(|slug, met| {
            let is_named = folder.manifest.pages.contains_key(slug);
            let on_server = met.slug.as_ref().unwrap_or(slug);
            is_named || state.frontends.iter().any(|one| one.slug == *on_server)
        });
        self.actions
            .retain(|name, _| folder.action(name).is_some() || state.action(name).is_some());
        if state.prices.is_some() {
            self.prices
                .retain(|key, _| folder.price(key).is_some() || state.price(key).is_some());
        }
    }

    /// Writes down what is about to be released.
    pub(super) fn expect_page(&mut self, slug: &str, text: PageText) {
        expect_part(&mut self.pages, slug, text);
    }

    /// Writes down what is about to be released.
    pub(super) fn expect_action(&mut self, name: &str, text: ActionText) {
        expect_part(&mut self.actions, name, text);
    }
}

fn expect_part<T>(parts: &mut MetParts<T>, name: &str, text: T) {
    let part = parts.entry(name.to_owned()).or_insert(MetPart::new());
    part.sent = Some(text);
}

/// Writes a part down if the folder and the server have the same; returns its entry then.
fn meet_part<'a, T: Comparable>(
    parts: &'a mut MetParts<T>,
    name: &str,
    (local, remote): (T, T),
    version: Option<String>,
) -> Option<&'a mut MetPart<T>> {
    if remote.beside(Some(&local)) != local {
        return None;
    }
    let part = parts.entry(name.to_owned()).or_insert(MetPart::new());
    *part = MetPart {
        both: Some(remote),
        version,
        ..MetPart::new()
    };
    Some(part)
}

/// Name of the file of a project; `None` for a server or a project that makes none. Both come from elsewhere, and lead nowhere else.
pub(crate) fn file_name(server: &Url, project: &str) -> Option<PathBuf> {
    let host = server.host_str()?;
    let port = server.port_or_known_default()?;
    if !is_uuid(project) || host.len() > MAX_HOST {
        return None;
    }
    // An address of IPv6 has brackets and colons.
    let safe = |c: char| match c {
        'a'..='z' | '0'..='9' | '-' | '.' => c,
        _ => '_',
    };
    let host: String = host.chars().map(safe).collect();
    Some(Path::new(DIRECTORY).join(format!("{host}-{port}-{project}.json")))
}

#[cfg(test)]
mod tests;
