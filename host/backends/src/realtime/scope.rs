//! Extractor of authority over the rooms of a backend; it fails if the backend has no rooms.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use super::RoomError;
use crate::access::{AuthenticatedCaller, MinimumRole, RoleProof};
use crate::backends::Backends;
use crate::backends::scope::AuthorizedBackend;
use crate::config::Config;
use crate::http::extract::check_length;
use crate::http::problem::Problem;
use crate::projects::Projects;
use crate::workspaces::Role;

/// Rooms of a backend, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedRooms<F> {
    /// Authority over the backend.
    pub at: AuthorizedBackend<F>,
}

impl<F: MinimumRole> AuthorizedRooms<F> {
    /// Returns the rooms of a backend.
    ///
    /// # Errors
    /// `Closed`.
    pub fn find(at: AuthorizedBackend<F>) -> Result<Self, RoomError> {
        if at.backend.realtime {
            Ok(Self { at })
        } else {
            Err(RoomError::Closed)
        }
    }
}

impl<F: MinimumRole> RoleProof for AuthorizedRooms<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: MinimumRole, S> FromRequestParts<S> for AuthorizedRooms<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Backends>: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // The body becomes a frame, so its limit is that of a frame, which is checked before any look-up.
        AuthenticatedCaller::from_request_parts(parts, state).await?;
        let config = Arc::<Config>::from_ref(state);
        check_length(&parts.headers, config.limits.frame_bytes)?;
        let at = AuthorizedBackend::from_request_parts(parts, state).await?;
        Ok(Self::find(at)?)
    }
}
