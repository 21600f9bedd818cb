//! Content: bytes named by their SHA-256, files of many such objects, and the private files of one-time shares.

mod artifact;
mod bucket;
mod claim;
mod error;
mod files;
mod local;
mod location;
mod lock;
mod object_directory;
mod object_locks;
mod one_time_files;
mod one_time_pages;
mod pins;
mod requests;
mod shared_objects;
mod store;
mod store_health;

pub use artifact::{EncodedPage, EncodedVariant, Encoding, gzip_as_stored, gzip_quickly};
pub use bucket::{claim_shared_bucket, open_shared_bucket, shared_bucket_owner};
pub use claim::OWNER_FILE;
pub use error::Error;
pub use files::{FileObjects, FileWriter, OBJECT_BYTES, ObjectList, ObjectPart, StoredFile};
pub use location::ContentLocation;
pub use lock::ContentLock;
pub use object_directory::{ObjectDirectory, ObjectPutError};
pub use one_time_files::OneTimeFileDirectory;
pub use one_time_pages::{OneTimeObjects, OneTimePages};
pub use pins::ObjectPin;
pub use requests::StoreConnector;
pub use store::ContentStore;
pub use svc_base::digest::{Digest, DigestBuilder};
