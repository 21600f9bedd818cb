//! Signed-in visitors: sign-in, sessions, and actions that use the caller's identity.

mod allowed_providers;
mod backups;
mod cookies;
pub(crate) mod crashes;
mod developing;
mod dishonest_issuer;
mod email_codes;
mod github;
pub(crate) mod guest_book;
mod mail_server;
mod own_secrets;
mod owners;
mod passkeys;
mod rooms;
mod secrets;
mod settings;
mod sign_ins;
mod tenants;

pub(crate) use guest_book::GuestBook;
pub(crate) use svc_tests::stub_issuer;
