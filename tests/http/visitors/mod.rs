//! Visitors who are somebody: sign-in, sessions, and actions that know who calls.

mod allowed_providers;
mod backups;
mod cookies;
pub(crate) mod crashes;
mod developing;
mod dishonest_issuer;
mod github;
pub(crate) mod guest_book;
mod owners;
mod rooms;
mod secrets;
mod settings;
mod sign_ins;
pub(crate) mod stub_issuer;
mod tenants;

pub(crate) use guest_book::GuestBook;
