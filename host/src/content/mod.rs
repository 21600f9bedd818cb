//! Content: bytes named by their SHA-256, and the private files of one-time shares.

mod artifact;
mod bucket;
mod claim;
mod error;
mod held;
mod hold;
mod local;
mod once;
mod pins;
mod place;
mod reach;
mod requests;
mod shelf;
mod store;
mod turns;

pub use artifact::{Artifact, Encoding, Variant, encoded_quickly};
pub use error::Error;
pub use hold::Hold;
pub use once::OnceFiles;
pub use pins::Pin;
pub use place::Place;
pub use requests::Connector;
pub use shelf::{PutError, Shelf};
pub use store::Content;
pub use svc_base::digest::Digest;
