//! From a request to a caller and its authority: what extractors and tools are made of.

mod admit;
mod authority;
mod completion;
pub mod idempotency;
mod identity;
mod operation;
mod tokens;

pub use admit::{Admission, admit};
pub use authority::{Admin, Asking, Authority, Editor, Floor, HasFloor, Owner, Viewer};
pub use completion::{Abandoned, finish_changes, to_the_end, while_awaited};
pub use identity::{
    Authenticated, Callers, Identity, MaybeCaller, credential_invalid, credential_missing,
};
pub use operation::{Row, floor};
pub use tokens::Tokens;
