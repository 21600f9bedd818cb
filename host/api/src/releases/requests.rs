//! Request of a release, and its checks: for REST and for tools alike.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use utoipa::ToSchema;

use super::model::{NewRelease, ReleasePart};
use super::problems::PART_MEMBER;
use crate::backends::model::{ActionRemoval, MAX_NOTE_CHARS, NewAction};
use crate::backends::releases::NewMigration;
use crate::backends::requests::ActionRequest;
use crate::config::Limits;
use crate::deployments::files::requests::{
    FileSource, FileSources, checked_options, optional_unique_files,
};
use crate::deployments::model::DeploymentType;
use crate::deployments::requests::{MAX_TITLE_CHARACTERS, check_content};
use crate::deployments::revisions::requests::MAX_MESSAGE_CHARACTERS;
use crate::deployments::revisions::sites::ReleasedSite;
use crate::deployments::revisions::sites::requests::{SiteChangesRequest, checked_source};
use crate::deployments::revisions::{
    ExpectedPage, ExpectedRevision, PageToRelease, ReleasedContent,
};
use crate::deployments::sites::SiteOptions;
use crate::http::bounded_list::optional_list_at_most;
use crate::http::extract::{
    body_too_large, check_characters, invalid_request, without_byte_order_mark,
};
use crate::http::problem::{Problem, ProblemCode};
use svc_base::json_object::optional_object;
use svc_base::names::is_slug;
use svc_base::numbers::optional_whole_number;

/// The most parts of a release.
pub const MAX_PARTS: usize = 100;
/// Longest text that is answered again as what was expected; an id is shorter.
const MAX_EXPECTED_CHARS: usize = 64;

/// A release: what a project's schema, actions, pages and home shall be, all of it or nothing. At least one part, and 100 at most.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseProject {
    /// Migrations of the backend, in order. The first one makes the backend of a project that has none.
    #[serde(default, deserialize_with = "optional_list_at_most::<_, _, MAX_PARTS>")]
    #[schema(max_items = 100)]
    pub migrations: Option<Vec<MigrationRequest>>,
    /// Actions to define, each name once; one that is left out stays as it is.
    #[serde(default, deserialize_with = "optional_list_at_most::<_, _, MAX_PARTS>")]
    #[schema(max_items = 100)]
    pub actions: Option<Vec<ActionRequest>>,
    /// Actions to end, each name once.
    #[serde(default, deserialize_with = "optional_list_at_most::<_, _, MAX_PARTS>")]
    #[schema(max_items = 100)]
    pub remove_actions: Option<Vec<ActionRemovalRequest>>,
    /// Pages to publish, each slug once; one that is left out stays as it is.
    #[serde(default, deserialize_with = "optional_list_at_most::<_, _, MAX_PARTS>")]
    #[schema(max_items = 100)]
    pub pages: Option<Vec<PageRequest>>,
    /// Pages to remove, each slug once.
    #[serde(default, deserialize_with = "optional_list_at_most::<_, _, MAX_PARTS>")]
    #[schema(max_items = 100)]
    pub remove_pages: Option<Vec<PageRemovalRequest>>,
    /// The slug of the frontend that the project's origin leads to, after the release; an empty one for the oldest.
    #[schema(max_length = 63)]
    pub home: Option<String>,
    /// Reason for the release, kept with the revisions that it makes.
    #[schema(max_length = 1000)]
    pub message: Option<String>,
    /// Whether the release is only tried: nothing is kept.
    pub dry_run: Option<bool>,
}

/// A migration to apply.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationRequest {
    /// An additive script, as a change of the backend takes it.
    #[schema(min_length = 1, max_length = 262_144)]
    pub ddl: String,
    /// Purpose of the migration; kept in the ledger.
    #[schema(max_length = 1000)]
    pub note: Option<String>,
}

/// An action to end.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRemovalRequest {
    /// Name of the action.
    pub name: String,
    /// Version that you believe it has.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 0)]
    pub expected_version: Option<u64>,
}

/// A page to publish.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PageRequest {
    /// Slug at which it answers; exactly this one, if it is new.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub slug: String,
    /// Type of the source, or `site`. A new page needs one; a page that is there keeps its own.
    #[serde(rename = "type")]
    pub content_type: Option<DeploymentType>,
    /// The source of a page; never empty.
    #[schema(min_length = 1)]
    pub content: Option<String>,
    /// All files of a site, by their paths.
    #[serde(default, deserialize_with = "optional_unique_files")]
    #[schema(value_type = Option<BTreeMap<String, FileSource>>)]
    pub files: Option<FileSources>,
    /// Changes of the live files of a site, in place of all files.
    #[serde(default, deserialize_with = "optional_object")]
    pub changes: Option<SiteChangesRequest>,
    /// Options of a site; as they were, if absent.
    #[serde(default, deserialize_with = "optional_object")]
    pub options: Option<SiteOptions>,
    /// The page's title; as it was, if absent. A site has that of its `index.html` then, where that is another file than before.
    #[schema(max_length = 200)]
    pub title: Option<String>,
    /// Revision that you believe is live; null if there is no page yet.
    #[serde(deserialize_with = "nullable")]
    #[schema(required = true, value_type = Option<String>, format = "uuid")]
    pub expected_active_revision_id: Option<String>,
}

/// A page to remove, with its history.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PageRemovalRequest {
    /// Slug at which it answers.
    #[schema(pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$", max_length = 63)]
    pub slug: String,
    /// Revision that you believe is live; null if you believe that there is no page.
    #[serde(deserialize_with = "nullable")]
    #[schema(required = true, value_type = Option<String>, format = "uuid")]
    pub expected_active_revision_id: Option<String>,
}

/// Reads a member that may be null, and must be there.
fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

/// Adds to a problem the part of a release that cannot be read.
pub fn with_unreadable_part(problem: Problem, json: &[u8]) -> Problem {
    if problem.code != ProblemCode::InvalidRequest {
        return problem;
    }
    let mut reader = serde_json::Deserializer::from_slice(without_byte_order_mark(json));
    let read = serde_path_to_error::deserialize::<_, ReleaseProject>(&mut reader);
    let Err(error) = read else {
        return problem;
    };
    let mut path = error.path().iter();
    match (path.next(), path.next()) {
        (Some(Segment::Map { key }), Some(Segment::Seq { index })) => {
            problem.with(PART_MEMBER, format!("{key}[{index}]"))
        }
        _ => problem,
    }
}

impl ReleaseProject {
    /// Returns the release that is asked for.
    ///
    /// # Errors
    /// `invalid_request`, `payload_too_large`, with the part at fault.
    pub fn checked(self, limits: &Limits) -> Result<NewRelease, Problem> {
        self.check_number()?;
        check_characters("message", self.message.as_deref(), MAX_MESSAGE_CHARACTERS)?;
        let (mut slugs, mut names) = (UniqueNames::new("slug"), UniqueNames::new("name"));
        let mut release = NewRelease {
            home: self.home,
            message: self.message,
            dry_run: self.dry_run.unwrap_or(false),
            ..NewRelease::default()
        };
        for (part, migration) in parts(ReleasePart::Migration, self.migrations) {
            let note = check_characters("note", migration.note.as_deref(), MAX_NOTE_CHARS);
            note.map_err(|problem| part.of(problem))?;
            release.migrations.push(NewMigration {
                ddl: migration.ddl,
                note: migration.note,
            });
        }
        for (part, action) in parts(ReleasePart::Action, self.actions) {
            names.add(&action.name).map_err(|twice| part.of(twice))?;
            release.actions.push(NewAction::from(action));
        }
        for (part, action) in parts(ReleasePart::ActionRemoval, self.remove_actions) {
            names.add(&action.name).map_err(|twice| part.of(twice))?;
            release.action_removals.push(ActionRemoval {
                name: action.name,
                expected_version: action.expected_version,
            });
        }
        for (part, page) in parts(ReleasePart::Page, self.pages) {
            let page = page.checked(limits).and_then(|page| {
                slugs.add(&page.1.slug)?;
                Ok(page)
            });
            let (page, expected) = page.map_err(|problem| part.of(problem))?;
            release.pages.push(page);
            release.expected_pages.push(expected);
        }
        for (part, page) in parts(ReleasePart::PageRemoval, self.remove_pages) {
            let slug = check_form(&page.slug).and_then(|()| slugs.add(&page.slug));
            slug.map_err(|problem| part.of(problem))?;
            let expected = expected_page(page.slug, page.expected_active_revision_id);
            release.page_removals.push(expected.slug.clone());
            release.expected_pages.push(expected);
        }
        Ok(release)
    }

    /// Refuses a release without any part, and one with too many.
    fn check_number(&self) -> Result<(), Problem> {
        let number = [
            self.migrations.as_ref().map(Vec::len),
            self.actions.as_ref().map(Vec::len),
            self.remove_actions.as_ref().map(Vec::len),
            self.pages.as_ref().map(Vec::len),
            self.remove_pages.as_ref().map(Vec::len),
        ];
        match number.into_iter().flatten().sum() {
            0 if self.home.is_none() => Err(invalid_request(
                "The release has no part: send at least one of `migrations`, `actions`, `remove_actions`, `pages`, `remove_pages` and `home`.",
            )),
            number if number > MAX_PARTS => Err(invalid_request(format!(
                "The release has {number} parts; {MAX_PARTS} is the most. Send several releases."
            ))),
            _ => Ok(()),
        }
    }
}

impl PageRequest {
    fn checked(self, limits: &Limits) -> Result<(PageToRelease, ExpectedPage), Problem> {
        check_form(&self.slug)?;
        check_characters("title", self.title.as_deref(), MAX_TITLE_CHARACTERS)?;
        let has_files = self.files.is_some() || self.changes.is_some();
        let changes_more = self.options.is_some() || self.title.is_some();
        let content = match self.content {
            Some(_) if has_files || self.options.is_some() => {
                return Err(invalid_request(
                    "`content` is of a page, and `files`, `changes` and `options` of a site: send those of one.",
                ));
            }
            Some(text) => ReleasedContent::Text(checked_text(text, limits)?),
            None if has_files => ReleasedContent::Site(ReleasedSite {
                source: checked_source(self.files, self.changes, changes_more)?,
                options: self.options.map(checked_options).transpose()?,
            }),
            None => {
                return Err(invalid_request(
                    "missing field `content`: send the source of a page, or `files` or `changes` of a site.",
                ));
            }
        };
        let expected = expected_page(self.slug.clone(), self.expected_active_revision_id);
        let page = PageToRelease {
            slug: self.slug,
            content_type: self.content_type,
            content,
            title: self.title.filter(|title| !title.is_empty()),
        };
        Ok((page, expected))
    }
}

/// Refuses a source of a page that is empty or too long.
fn checked_text(text: String, limits: &Limits) -> Result<String, Problem> {
    check_content(&text)?;
    match text.len() as u64 > limits.body_bytes {
        true => Err(content_too_large(limits.body_bytes)),
        false => Ok(text),
    }
}

/// Returns the problem of a page that alone is more than a publication may send.
fn content_too_large(most: u64) -> Problem {
    Problem {
        detail: format!("`content` has more than {most} bytes, which is all that a page may have.")
            .into(),
        ..body_too_large(most)
    }
}

/// Refuses what cannot be a slug. One in the form of an id may be that of an older page.
fn check_form(slug: &str) -> Result<(), Problem> {
    if is_slug(slug) {
        return Ok(());
    }
    Err(invalid_request(
        "`slug` cannot be a slug: use 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit.",
    ))
}

fn expected_page(slug: String, expected: Option<String>) -> ExpectedPage {
    let expected = match expected {
        None => ExpectedRevision::NoPage,
        Some(text) => match text.parse() {
            Ok(id) => ExpectedRevision::Live(id),
            Err(_) => ExpectedRevision::NotAnId(text.chars().take(MAX_EXPECTED_CHARS).collect()),
        },
    };
    ExpectedPage { slug, expected }
}

/// Numbers the parts of a kind.
fn parts<T>(
    kind: fn(usize) -> ReleasePart,
    list: Option<Vec<T>>,
) -> impl Iterator<Item = (ReleasePart, T)> {
    let list = list.into_iter().flatten().enumerate();
    list.map(move |(index, part)| (kind(index), part))
}

/// Names of which a release has each once.
struct UniqueNames {
    member: &'static str,
    seen: HashSet<String>,
}

impl UniqueNames {
    fn new(member: &'static str) -> Self {
        Self {
            member,
            seen: HashSet::new(),
        }
    }

    fn add(&mut self, name: &str) -> Result<(), Problem> {
        if self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let member = self.member;
        Err(invalid_request(format!(
            "The release has this `{member}` already: send each `{member}` once, to be released or to be removed."
        )))
    }
}
