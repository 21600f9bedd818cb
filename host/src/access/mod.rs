//! From a request to a caller and its authority: what extractors and tools are made of.

mod admit;
mod authority;
mod completion;
pub mod idempotency;
mod identity;
mod operation;
mod tokens;

pub use admit::{Admission, admit};
pub use authority::{
    Admin, Authority, Editor, HasMinimumRole, MinimumRole, Owner, Viewer, WorkspaceChooser,
};
pub use completion::{ClientGone, finish_changes, run_to_completion, while_client_waits};
pub use identity::{
    Authenticated, Authenticator, Identity, MaybeCaller, credential_invalid, credential_missing,
};
pub use operation::{OperationInfo, floor};
pub use tokens::TokenVerifier;
