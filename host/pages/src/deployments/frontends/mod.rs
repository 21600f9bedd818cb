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
    Frontend, FrontendError, FrontendSelector, FrontendState, FrontendSummary, NewFrontend,
    NewSiteFrontend,
};
pub use service::Frontends;
pub use store::{backend_changed, bind_backend};

pub(super) use store::rebind_backend;

pub(super) use service::{activate_in, active_in, address_of, claim_in, find_active_in, remove_in};
