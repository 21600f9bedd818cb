//! Sources of pages: content types, and files as sources. The server and its client use the same rules.

#![forbid(unsafe_code)]

mod content_type;
pub mod files;
mod languages;
pub mod media;

pub use content_type::{ContentType, UnknownContentType};
pub use languages::LANGUAGES;
