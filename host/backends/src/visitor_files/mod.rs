//! Files that visitors bring: they come in and go out through named actions alone, and a row and its file are one.
//!
//! An upload arrives in a temporary file, is looked at and cleaned by a guest, and is stored and named before one transaction of the
//! backend's database commits the row of `svc_files` with the statement of the action. What was stored and not committed, and what is
//! named by rows that are gone, is found by a look at the database (`follow.rs`).

pub mod check;
mod downloads;
mod follow;
mod form;
mod inspection;
mod keys;
mod model;
pub mod operations;
mod pieces;
mod problems;
mod quotas;
pub mod requests;
pub mod routes;
mod service;
mod spool;
mod uploads;
pub mod views;

pub use model::UploadError;
pub use routes::VisitorFileRouteServices;
pub use service::VisitorFiles;
