//! Visitors who are somebody: sign-in, sessions, and actions that know who calls.

mod allowed;
mod developing;
mod lies;
mod owners;
mod place;
mod stub;
mod walks;

pub(crate) use place::Place;
