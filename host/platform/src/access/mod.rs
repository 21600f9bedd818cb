//! From a request to a caller and its authority, for extractors and tools.

mod admit;
mod authority;
mod completion;
pub mod idempotency;
mod identity;
pub mod in_flight;
mod operation;
mod tokens;

pub use admit::{AdmissionLayerState, OwnerBucket, admit};
pub use authority::{
    Admin, AuthorizedCaller, CallerChoosingWorkspace, Editor, MinimumRole, Owner, RoleProof, Viewer,
};
pub use completion::{
    ClientDisconnected, run_changes_to_completion, run_to_completion, run_while_client_waits,
};
pub use identity::{
    AuthenticatedCaller, AuthenticationResult, Authenticator, MaybeCaller, credential_invalid,
    credential_missing,
};
pub use operation::{OperationMetadata, OperationPlace, minimum_role};
pub use tokens::TokenVerifier;
