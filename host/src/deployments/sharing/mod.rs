//! Shares after their publication: their publishers delete them, owners claim them for projects; and files that are
//! published as they are.

pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
mod scope;
mod service;
mod store;
mod token;

pub use service::ShareError;
pub use token::DeleteToken;

pub(super) use store::forget_tokens;
