//! The render guest.
