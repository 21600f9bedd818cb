//! Quick shares: anybody publishes them for a time, readers may burn them, their publishers delete them, and owners claim them for projects.

pub mod operations;
mod problems;
mod publish;
pub mod requests;
pub mod routes;
mod scope;
mod service;
mod shown_file;
mod store;
mod token;
pub mod views;

pub use publish::{NewShare, NewSiteShare};
pub use service::{ShareError, Shares};
pub use token::DeleteToken;
