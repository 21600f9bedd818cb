//! Releases: the parts of a folder that are sent in one request, and how they are split where they are too many for one.

use serde_json::{Map, Value, json};

use super::ProjectFolder;
use super::pages::{LocalContent, LocalSite};
use crate::actions::ActionFile;
use crate::error::{CliFailure, Result};
use crate::sites::{RemoteSite, add_site};
use svc_base::names::{RANDOM_SUFFIX_LENGTH, append_suffix_within_limit, numbered_slugs};
use svc_base::random::Random;

/// The most parts of a release.
const MAX_PARTS: usize = 100;
/// Approximate bytes of a release, below the server's limit of a body.
const MAX_BYTES: usize = 3 << 20;

/// A part of a release. The variants stand in the order in which releases have them: an action may need a migration, a page an action,
/// and what ends is needed by what was live before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReleasePart {
    /// Applies the migration of this index.
    Migration(usize),
    /// Defines the action of this index, in the place of this version.
    Action { number: usize, expected: u64 },
    /// Releases the page of this index at a slug, in the place of this revision.
    Page {
        number: usize,
        slug: String,
        expected: Option<String>,
        is_new: bool,
        /// Files of that revision, if the page is a site.
        base: Option<RemoteSite>,
    },
    /// Deletes a page.
    RemovePage {
        slug: String,
        expected: Option<String>,
    },
    /// Ends an action.
    RemoveAction { name: String, expected: u64 },
}

/// How much a release may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReleaseLimits {
    parts: usize,
    bytes: usize,
}

/// Name of a part in a problem, such as `pages[2]`.
const LISTS: [&str; 5] = [
    "migrations",
    "actions",
    "pages",
    "remove_pages",
    "remove_actions",
];

impl ReleasePart {
    /// Place of the part's kind in the order, and in [`LISTS`].
    fn rank(&self) -> usize {
        match self {
            Self::Migration(_) => 0,
            Self::Action { .. } => 1,
            Self::Page { .. } => 2,
            Self::RemovePage { .. } => 3,
            Self::RemoveAction { .. } => 4,
        }
    }

    /// Site of the part, with its files in the revision that it takes the place of.
    pub(super) fn site<'a>(
        &'a self,
        folder: &'a ProjectFolder,
    ) -> Option<(&'a LocalSite, Option<&'a RemoteSite>)> {
        match self {
            Self::Page { number, base, .. } => {
                let site = folder.pages[*number].site()?;
                Some((site, base.as_ref()))
            }
            _ => None,
        }
    }

    /// Entry of the request.
    fn to_json(&self, folder: &ProjectFolder) -> Value {
        match self {
            Self::Migration(number) => {
                let migration = &folder.migrations[*number];
                // The file's name identifies the migration in the ledger.
                json!({ "ddl": migration.sql, "note": migration.name })
            }
            Self::Action { number, expected } => {
                let mut entry = folder.actions[*number].to_json();
                entry["expected_version"] = (*expected).into();
                entry
            }
            Self::Page {
                number,
                slug,
                expected,
                is_new,
                base,
            } => {
                let page = &folder.pages[*number];
                let mut entry = json!({ "slug": slug, "expected_active_revision_id": expected });
                let mut title = page.title.as_ref();
                match &page.content {
                    LocalContent::Page(source) => {
                        entry["type"] = json!(source.content_type);
                        entry["content"] = source.content.as_str().into();
                        title = title.or(source.title.as_ref().filter(|_| *is_new));
                    }
                    LocalContent::Site(site) => {
                        add_site(&mut entry, &site.folder, (base.as_ref(), &site.options));
                    }
                }
                if let Some(title) = title {
                    entry["title"] = title.as_str().into();
                }
                entry
            }
            Self::RemovePage { slug, expected } => {
                json!({ "slug": slug, "expected_active_revision_id": expected })
            }
            Self::RemoveAction { name, expected } => {
                json!({ "name": name, "expected_version": expected })
            }
        }
    }
}

impl ReleaseLimits {
    pub(super) const DEFAULT: Self = Self {
        parts: MAX_PARTS,
        bytes: MAX_BYTES,
    };

    /// Counts the parts at the beginning that fit into one release; one at least.
    pub(super) fn fitting(self, folder: &ProjectFolder, parts: &[ReleasePart]) -> usize {
        let mut bytes = 0;
        let fits = |part: &&ReleasePart| {
            bytes += part.to_json(folder).to_string().len();
            bytes <= self.bytes
        };
        let count = parts.iter().take(self.parts).take_while(fits).count();
        count.max(1).min(parts.len())
    }

    /// Counts the releases that parts make.
    pub(super) fn count(self, folder: &ProjectFolder, mut parts: &[ReleasePart]) -> usize {
        let mut count = 0;
        while !parts.is_empty() {
            parts = &parts[self.fitting(folder, parts)..];
            count += 1;
        }
        count
    }

    /// Halves the bytes, after a server has refused the length of a release.
    pub(super) fn halve(&mut self) {
        self.bytes /= 2;
    }
}

/// Sorts parts as releases have them.
pub(super) fn sort_parts(parts: &mut [ReleasePart]) {
    parts.sort_by_key(ReleasePart::rank);
}

/// Body of a release. The home page is named by the slug that it has, or is about to have.
pub(super) fn release_body(
    folder: &ProjectFolder,
    parts: &[ReleasePart],
    home: Option<&str>,
    message: Option<&str>,
) -> Value {
    let mut body = Map::new();
    for (rank, list) in LISTS.into_iter().enumerate() {
        let entries = parts.iter().filter(|part| part.rank() == rank);
        let entries: Vec<_> = entries.map(|part| part.to_json(folder)).collect();
        if !entries.is_empty() {
            body.insert(list.to_owned(), entries.into());
        }
    }
    if let Some(home) = home {
        body.insert("home".to_owned(), final_slug(folder, parts, home).into());
    }
    if let Some(message) = message {
        body.insert("message".to_owned(), message.into());
    }
    body.into()
}

/// Slug that the page of a manifest gets in a release: another than its own, where that is taken.
pub(super) fn final_slug<'a>(
    folder: &ProjectFolder,
    parts: &'a [ReleasePart],
    wanted: &'a str,
) -> &'a str {
    let found = parts.iter().find_map(|part| match part {
        ReleasePart::Page { number, slug, .. } if folder.pages[*number].slug == wanted => {
            Some(slug)
        }
        _ => None,
    });
    found.map_or(wanted, String::as_str)
}

/// Finds the part that a problem names, by its place among the parts of the request.
fn refused_part(failure: &CliFailure, parts: &[ReleasePart]) -> Option<usize> {
    let (list, number) = failure
        .member("part")?
        .as_str()?
        .strip_suffix(']')?
        .split_once('[')?;
    let rank = LISTS.iter().position(|one| *one == list)?;
    let number: usize = number.parse().ok()?;
    let of_kind = |(_, part): &(usize, &ReleasePart)| part.rank() == rank;
    let mut of_kind = parts.iter().enumerate().filter(of_kind);
    of_kind.nth(number).map(|(place, _)| place)
}

/// Adds the file of the refused part to a failure of a release.
pub(super) fn with_part_files(
    failure: CliFailure,
    parts: &[ReleasePart],
    folder: &ProjectFolder,
) -> CliFailure {
    let failure = match refused_part(&failure, parts).map(|place| &parts[place]) {
        Some(ReleasePart::Migration(number)) => failure.with_file(&folder.migrations[*number].path),
        Some(ReleasePart::Action { number, .. }) => {
            failure.with_file(&folder.actions[*number].path)
        }
        Some(ReleasePart::Page { number, .. }) => {
            let page = &folder.pages[*number];
            match page.site() {
                Some(site) => site.folder.explain(failure.with_file(page.path())),
                None => failure.with_file(page.path()),
            }
        }
        _ => failure,
    };
    ActionFile::with_action_files(failure, &folder.actions)
}

/// Gives a new page whose slug is taken another slug, as the server does for a single page; returns the page's number and the slug.
/// `None` for any other failure, and after the last candidate.
///
/// # Errors
/// When the system has no randomness.
pub(super) fn choose_free_slug(
    failure: &CliFailure,
    parts: &mut [ReleasePart],
    folder: &ProjectFolder,
) -> Result<Option<(usize, String)>> {
    if failure.code() != "slug_conflict" {
        return Ok(None);
    }
    let Some(place) = refused_part(failure, parts) else {
        return Ok(None);
    };
    let ReleasePart::Page {
        number,
        slug,
        is_new: true,
        ..
    } = &mut parts[place]
    else {
        return Ok(None);
    };
    let wanted = &folder.pages[*number].slug;
    let mut candidates = [wanted.clone()].into_iter().chain(numbered_slugs(wanted));
    let is_numbered = candidates.by_ref().any(|candidate| candidate == *slug);
    *slug = match (is_numbered, candidates.next()) {
        (true, Some(next)) => next,
        (true, None) => {
            let random = Random::system().slug(RANDOM_SUFFIX_LENGTH);
            let random = random.map_err(|_| CliFailure::local("The system has no randomness."))?;
            append_suffix_within_limit(wanted, &random)
        }
        // A random one is taken, too.
        (false, _) => return Ok(None),
    };
    Ok(Some((*number, slug.clone())))
}

#[cfg(test)]
mod tests;
