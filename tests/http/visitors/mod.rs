//! Visitors who are somebody: sign-in, sessions, and actions that know who calls.

mod allowed;
pub(crate) mod crashes;
mod developing;
mod lies;
mod others;
mod owners;
pub(crate) mod place;
pub(crate) mod stub;
mod walks;

pub(crate) use place::Place;
