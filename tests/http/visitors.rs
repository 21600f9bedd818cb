//! Visitors who are somebody: sign-in, sessions, and actions that know who calls.

mod developing;
pub(crate) mod place;
