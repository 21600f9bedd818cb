//! Operations: what owners do, each written once, with REST's routes and the tools as shells around it.
//!
//! An operation is a plain function of its domain's `operations.rs`:
//!
//! ```text
//! async fn promote(deployments: Arc<Deployments>, frontend: FrontendScope<Editor>, input: ReleaseRequest) -> Result<ReleasedView, Problem>
//!                  the service                    authority, whose type is the floor  what was sent          what is answered
//! ```
//!
//! One that a client may repeat with an `Idempotency-Key` also takes a [`AnswerKeeper`](crate::control::kept_answers::AnswerKeeper), which keeps its
//! answer in the transaction of its effect. A door reads the input, calls the function and writes the answer. That what changes
//! something runs to its end is no door's to remember: `completion.rs` is around all of them. [`Row`]s list the operations: the
//! runner of tools, tests, the description and the documents read the list.

use super::authority::HasMinimumRole;
use crate::control::audit::AuditAction;
use crate::workspaces::Role;

/// An operation in the list of all.
#[derive(Clone, Copy, Debug)]
pub struct OperationInfo {
    /// Name in the OpenAPI description.
    pub id: &'static str,
    /// The tool that offers it, and its action there; none where a model has no use for it, as for secrets.
    pub tool: Option<(&'static str, &'static str)>,
    /// The least role that it takes.
    pub floor: Role,
    /// Whether it changes something, or only reads.
    pub changes: bool,
    /// Entries that it leaves in the audit: one of these for each change.
    pub audit_actions: &'static [AuditAction],
}

/// The floor of an operation, read off the type of its second argument.
pub fn floor<O: OperationWithRole<Arguments>, Arguments>(_: &O) -> Role {
    O::ROLE
}

/// A function whose second argument proves a role.
pub trait OperationWithRole<Arguments> {
    /// The role.
    const ROLE: Role;
}

macro_rules! floored {
    ($($input:ident)*) => {
        impl<O, S, A: HasMinimumRole, $($input,)* T> OperationWithRole<(S, A, $($input,)*)> for O
        where
            O: Fn(S, A, $($input,)*) -> T,
        {
            const ROLE: Role = A::ROLE;
        }
    };
}

floored!();
floored!(B);
floored!(B C);
floored!(B C D);
floored!(B C D E);
