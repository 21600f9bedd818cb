//! Authority over the rooms of a backend, by extractor: there is none where the backend has no rooms.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use super::RoomError;
use crate::access::{Authenticated, HasMinimumRole, MinimumRole};
use crate::backends::Backends;
use crate::backends::scope::BackendScope;
use crate::config::Config;
use crate::http::extract::check_length;
use crate::http::problem::Problem;
use crate::projects::Projects;
use crate::workspaces::Role;

/// The rooms of a backend, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct RoomsScope<F> {
    /// The caller's authority over the backend.
    pub at: BackendScope<F>,
}

impl<F: MinimumRole> RoomsScope<F> {
    /// Finds the rooms of a backend.
    ///
    /// # Errors
    /// `Closed`.
    pub fn find(at: BackendScope<F>) -> Result<Self, RoomError> {
        if at.backend.realtime {
            Ok(Self { at })
        } else {
            Err(RoomError::Closed)
        }
    }
}

impl<F: MinimumRole> HasMinimumRole for RoomsScope<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: MinimumRole, S> FromRequestParts<S> for RoomsScope<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Backends>: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // A body goes into a frame, so its bound is a frame's: looked at before anything is looked up.
        Authenticated::from_request_parts(parts, state).await?;
        let config = Arc::<Config>::from_ref(state);
        check_length(&parts.headers, config.limits.frame_bytes)?;
        let at = BackendScope::from_request_parts(parts, state).await?;
        Ok(Self::find(at)?)
    }
}
