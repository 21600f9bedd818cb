//! Operations: what owners do, each written once, with REST's routes and the tools as shells around it.
//!
//! An operation is a plain function of its domain's `operations.rs`:
//!
//! ```text
//! async fn promote(deployments: Arc<Deployments>, frontend: FrontendScope<Editor>, input: ReleaseRequest) -> Result<ReleasedView, Problem>
//!                  the service                    authority, whose type is the floor  what was sent          what is answered
//! ```
//!
//! One that a client may repeat with an `Idempotency-Key` also takes a [`Keep`](crate::control::answers::Keep), which keeps its
//! answer in the transaction of its effect. A door reads the input, calls the function through [`to_the_end`] if it changes
//! something, and writes the answer. [`Row`]s list all of them: tests, the description and the documents read the list.

use tracing::Instrument;

use super::authority::HasFloor;
use crate::control::audit::{self, Act};
use crate::http::problem::Problem;
use crate::workspaces::Role;

/// An operation in the list of all.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name in the OpenAPI description.
    pub id: &'static str,
    /// The tool that offers it, and its action there; none where a model has no use for it, as for secrets.
    pub tool: Option<(&'static str, &'static str)>,
    /// The least role that it takes.
    pub floor: Role,
    /// Entries that it leaves in the audit: one of these for each change, and none if it only reads.
    pub acts: &'static [Act],
}

/// The floor of an operation, read off the type of its second argument.
pub fn floor<O: Floored<Arguments>, Arguments>(_: &O) -> Role {
    O::ROLE
}

/// A function whose second argument proves a role.
pub trait Floored<Arguments> {
    /// The role.
    const ROLE: Role;
}

impl<O, S, A: HasFloor, T> Floored<(S, A)> for O
where
    O: Fn(S, A) -> T,
{
    const ROLE: Role = A::ROLE;
}

impl<O, S, A: HasFloor, I, T> Floored<(S, A, I)> for O
where
    O: Fn(S, A, I) -> T,
{
    const ROLE: Role = A::ROLE;
}

impl<O, S, A: HasFloor, I, K, T> Floored<(S, A, I, K)> for O
where
    O: Fn(S, A, I, K) -> T,
{
    const ROLE: Role = A::ROLE;
}

/// Does work to its end, on behalf of who asked for it, even if that client hangs up, which drops the handler half-way.
///
/// # Errors
/// The work's, or that it panicked.
pub async fn to_the_end<T: Send + 'static, E: Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    Problem: From<E>,
{
    let work = audit::carried(audit::doer(), work);
    let done = tokio::spawn(work.in_current_span()).await;
    Ok(done.map_err(|error| Problem::internal(&error))??)
}
