//! Maps errors of workspaces to problems.

use super::WorkspaceError;
use crate::http::problem::{Problem, ProblemCode};

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        use WorkspaceError as E;
        let detail = error.to_string();
        let (code, detail) = match error {
            E::Unknown(name) => (
                ProblemCode::NotFound,
                format!("There is no workspace `{name}`. List yours: GET /api/v1/workspaces, or manage_workspace list."),
            ),
            E::Foreign(name) => (
                ProblemCode::Forbidden,
                format!("You are no member of the workspace `{name}`. Ask one of its admins to add you."),
            ),
            E::Role { has, needs } => (
                ProblemCode::Forbidden,
                format!("Your role in this workspace is {has}, and this takes {}. Ask one of its owners.", needs.as_str()),
            ),
            E::Ambiguous(slugs) => (
                ProblemCode::InvalidRequest,
                format!("You are in several workspaces. Name one in `workspace`: {}.", slugs.join(", ")),
            ),
            E::NoWorkspace => (
                ProblemCode::Forbidden,
                "You are in no workspace yet. Make one (POST /api/v1/workspaces, or manage_workspace create), or ask an admin of one to add your user_id, which GET /api/v1/me shows.".to_owned(),
            ),
            E::UsersOnly => (
                ProblemCode::Forbidden,
                "A key belongs to one workspace and makes no others: this takes the access token of a user.".to_owned(),
            ),
            E::TooManyOwned(_) => (
                ProblemCode::Forbidden,
                format!("You own as many workspaces as you may: {detail}. Delete one first."),
            ),
            E::TooManyFree(_) => (ProblemCode::PlanLimit, format!("{detail}. Delete or upgrade one.")),
            E::TooManyMembers(_) => (
                ProblemCode::InvalidRequest,
                format!("{detail}. Remove one first."),
            ),
            E::TooManyKeys(_) => (ProblemCode::InvalidRequest, format!("{detail}. Revoke one first.")),
            E::UnknownUser(user) => (
                ProblemCode::NotFound,
                format!("There is no user `{user}`. Users have an id once they have called this service: GET /api/v1/me shows it to them."),
            ),
            E::NoMember(_) => (ProblemCode::NotFound, format!("{detail}. Its members are listed at its address with /members.")),
            E::AboveOwn(_) => (ProblemCode::Forbidden, format!("{detail}. Ask an owner.")),
            E::LastOwner => (
                ProblemCode::LastOwner,
                "The workspace has no other owner: give somebody else this role first.".to_owned(),
            ),
            E::PlanRefused(detail) => (ProblemCode::PlanLimit, detail),
            E::SlugTaken(slug) => (
                ProblemCode::SlugConflict,
                format!("There is a workspace `{slug}` already. Choose another `slug`, or leave it out."),
            ),
            E::UnknownKey(key) => (ProblemCode::NotFound, format!("The workspace has no key `{key}`.")),
            E::Store(error) => return error.into(),
            E::BadName | E::Subscribed(_) | E::Random(_) => return Self::internal(&detail),
        };
        Self::new(code, detail)
    }
}
