//! Visitors who are somebody: sign-in, sessions, and actions that know who calls.

mod allowed;
mod backups;
mod cookies;
pub(crate) mod crashes;
mod developing;
mod lies;
mod others;
mod owners;
pub(crate) mod place;
mod rooms;
mod secrets;
mod settings;
pub(crate) mod stub;
mod tenants;
mod walks;

pub(crate) use place::Place;
