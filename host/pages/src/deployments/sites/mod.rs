//! Sites: sets of files, as revisions of a frontend keep them and addresses below it name them.

mod addresses;
mod manifest;
mod media_types;
mod paths;
mod reader;
mod urls;

pub use addresses::{SiteAnswer, SiteRequest};
pub use manifest::{SiteFile, SiteManifest, SiteOptions, SiteSize};
pub use media_types::{is_compressible, is_html, media_type};
pub use paths::{PathFault, case_collisions, check_paths, hidden_paths, path_fault};
pub use reader::FileReader;
pub use urls::url_path;
