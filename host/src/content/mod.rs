//! Content: bytes named by their SHA-256, and the private files of one-time shares.

mod artifact;
mod bucket;
mod claim;
mod error;
mod shared_objects;
mod lock;
mod local;
mod one_time_files;
mod pins;
mod location;
mod store_health;
mod requests;
mod object_directory;
mod store;
mod object_locks;

pub use artifact::{Artifact, Encoding, Variant, gzip_quickly};
pub use error::Error;
pub use lock::ContentLock;
pub use one_time_files::OneTimeFiles;
pub use pins::Pin;
pub use location::ContentLocation;
pub use requests::StoreConnector;
pub use object_directory::{PutError, ObjectDirectory};
pub use store::Content;
pub use svc_base::digest::Digest;
