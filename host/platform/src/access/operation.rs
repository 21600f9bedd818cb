//! Operations of owners, each written once, with the REST routes and the tools as shells around it.
//!
//! An operation is a plain function of its domain's `operations.rs`:
//!
//! ```text
//! async fn promote(deployments: Arc<Deployments>, frontend: FrontendScope<Editor>, input: ReleaseRequest) -> Result<ReleasedView, Problem>
//!                  the service                    authority, whose type is the floor  what was sent          what is answered
//! ```
//!
//! An operation that a client may repeat with an `Idempotency-Key` also takes a
//! [`AnswerRecorder`](crate::control::kept_answers::AnswerRecorder), which keeps its answer in the transaction of its effect. A shell reads
//! the input, calls the function and writes the answer. `completion.rs` around all shells has operations that change something run to
//! completion. [`OperationMetadata`]s list the operations: the runner of tools, tests, the description and the documents read the list.

use super::authority::RoleProof;
use crate::control::audit::AuditAction;
use crate::workspaces::Role;

/// Node of several that answers an operation. One machine answers all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationPlace {
    /// Every node.
    AnyNode,
    /// Node that has the backend's database.
    Backend,
    /// Node that has the control database.
    Control,
    /// Node that has the control database, and gets the backend's database for it.
    ControlWithBackend,
}

/// Entry of an operation in the list of all.
#[derive(Clone, Copy, Debug)]
pub struct OperationMetadata {
    /// Operation id in the OpenAPI description.
    pub id: &'static str,
    /// The tool and its action that offer the operation; `None` if models should not have it, as for secrets.
    pub tool: Option<(&'static str, &'static str)>,
    /// Minimum role of the caller.
    pub floor: Role,
    /// Whether the operation changes something.
    pub changes: bool,
    /// Node of several that answers it.
    pub place: OperationPlace,
    /// Audit actions that it may record: one of these for each change.
    pub audit_actions: &'static [AuditAction],
}

/// Returns the minimum role of an operation, read off the type of its second argument.
pub fn minimum_role<O: RoleCheckedOperation<Arguments>, Arguments>(_: &O) -> Role {
    O::ROLE
}

/// A function whose second argument proves a role.
pub trait RoleCheckedOperation<Arguments> {
    /// The role.
    const ROLE: Role;
}

macro_rules! floored {
    ($($input:ident)*) => {
        impl<O, S, A: RoleProof, $($input,)* T> RoleCheckedOperation<(S, A, $($input,)*)> for O
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
