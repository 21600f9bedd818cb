//! Links from checkout cookies that were given to those that they replace.
//!
//! The purchases of a cookie move when a browser first sends the fresh one, not when it is given: the answer may be lost, or
//! overtaken by the answer to another checkout. Nothing ever moves to the cookie that was sent: somebody else may have set it.

mod store;

pub(super) use store::{delete_old_batch, follow, insert, is_pending, remove_batch};
