//! A node of several: the bucket that they share.

pub mod bases;
pub mod bucket;
pub mod found;
pub mod histories;
mod schedule;
#[cfg(test)]
mod tests;
