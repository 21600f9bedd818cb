//! Sources of pages: the types of content, and what a file is as a source. The server and its client judge a file by the same rules.

#![forbid(unsafe_code)]

mod content_type;
pub mod files;
mod languages;

pub use content_type::{ContentType, UnknownContentType};
pub use languages::LANGUAGES;
