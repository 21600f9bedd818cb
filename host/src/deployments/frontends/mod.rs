//! Frontends: a project's published pages, with an address that lasts and a content that changes.

mod model;
pub mod operations;
mod problems;
pub mod requests;
pub mod routes;
pub mod scope;
mod service;
mod store;
pub mod views;

pub use model::{
    Frontend, FrontendError, FrontendState, MemberSummary, NewContent, NewFrontend, Target,
};

pub use store::bind_backend;

pub(super) use service::address_of;
pub(super) use store::{deleting, mark_deleting, remove_all_unfinished, set_live, slugs};
