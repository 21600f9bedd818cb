//! Requests about projects, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::model::{
    MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MAX_TTL_SECONDS, MIN_TTL_SECONDS, NewProject,
    ProjectChanges,
};
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::{Problem, ProblemCode};
use svc_base::numbers::optional_whole_number;

/// A project to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateProject {
    /// Name for people.
    #[schema(min_length = 1, max_length = 100, example = "Web shop")]
    pub name: String,
    /// Description of the project.
    #[schema(max_length = 2000)]
    pub description: Option<String>,
    /// How long it lives, in seconds; for good, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 60, maximum = 315_360_000)]
    pub ttl_seconds: Option<u64>,
    /// Whether it lives for good; the default.
    pub permanent: Option<bool>,
    /// The workspace (id or slug) that will own it; needed only by who has several.
    pub workspace: Option<String>,
}

/// Changes of a project.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateProject {
    /// A new name.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// A new description; an empty one clears it.
    #[schema(max_length = 2000)]
    pub description: Option<String>,
    /// The sign-in providers that its frontends may offer; an empty list allows all.
    pub allowed_providers: Option<Vec<String>>,
    /// The slug of the frontend that the project's origin leads to; an empty one for the oldest.
    #[schema(max_length = 63)]
    pub home: Option<String>,
}

/// Which projects to list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListProjects {
    /// The workspace (id or slug); needed only by who has several.
    pub workspace: Option<String>,
}

impl CreateProject {
    /// Returns the requested project.
    ///
    /// # Errors
    /// `invalid_request` or `contradictory_expiry`.
    pub fn checked(self) -> Result<NewProject, Problem> {
        check_name(&self.name)?;
        check_characters(
            "description",
            self.description.as_deref(),
            MAX_DESCRIPTION_CHARS,
        )?;
        let contradictory = match (self.ttl_seconds, self.permanent) {
            (Some(_), Some(true)) => {
                Some("`ttl_seconds` and `permanent: true` contradict each other: send one of them.")
            }
            (None, Some(false)) => {
                Some("`permanent: false` needs `ttl_seconds`: say how long the project lives.")
            }
            _ => None,
        };
        if let Some(detail) = contradictory {
            return Err(Problem::new(ProblemCode::ContradictoryExpiry, detail));
        }
        if self
            .ttl_seconds
            .is_some_and(|ttl| !(MIN_TTL_SECONDS..=MAX_TTL_SECONDS).contains(&ttl))
        {
            return Err(invalid_request(format!(
                "`ttl_seconds` must be from {MIN_TTL_SECONDS} to {MAX_TTL_SECONDS}."
            )));
        }
        Ok(NewProject {
            name: self.name,
            description: self.description,
            ttl_seconds: self.ttl_seconds,
        })
    }
}

impl UpdateProject {
    /// Returns the requested changes.
    ///
    /// # Errors
    /// `nothing_to_update` or `invalid_request`.
    pub fn checked(self) -> Result<ProjectChanges, Problem> {
        let fields = [
            self.name.is_some(),
            self.description.is_some(),
            self.allowed_providers.is_some(),
            self.home.is_some(),
        ];
        if !fields.contains(&true) {
            return Err(Problem::new(
                ProblemCode::NothingToUpdate,
                "Nothing to update: send `name`, `description`, `allowed_providers` or `home`.",
            ));
        }
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        check_characters(
            "description",
            self.description.as_deref(),
            MAX_DESCRIPTION_CHARS,
        )?;
        Ok(ProjectChanges {
            name: self.name,
            description: self.description,
            allowed_providers: self.allowed_providers,
            home: self.home,
        })
    }
}

/// Refuses an empty name and one that is too long.
///
/// # Errors
/// `invalid_request`.
fn check_name(name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() {
        return Err(invalid_request("`name` is empty: give the project a name."));
    }
    check_characters("name", Some(name), MAX_NAME_CHARS)
}
