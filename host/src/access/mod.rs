//! From a request to a caller and its authority: what extractors and tools are made of.

mod admit;
mod authority;
pub mod idempotency;
mod identity;
mod operation;
mod tokens;

pub use admit::{Admission, admit};
pub use authority::{Admin, Asking, Authority, Editor, Floor, HasFloor, Owner, Viewer};
pub use identity::{
    Authenticated, Callers, Identity, MaybeCaller, credential_invalid, credential_missing,
};
pub use operation::{Abandoned, Row, floor, to_the_end, while_awaited};
pub use tokens::Tokens;
