//! Runs guests.
