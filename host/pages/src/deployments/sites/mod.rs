//! Sites: sets of files, as revisions of a frontend keep them and addresses below it name them.

mod addresses;
mod immutables;
mod manifest;
mod media_types;
mod paths;
mod reader;
mod rules;
mod urls;

pub use addresses::{FoundFile, SiteAnswer, SiteRequest, is_too_long};
pub use immutables::{ImmutableChange, ImmutableFiles, pattern_fault};
pub use manifest::{SiteFile, SiteManifest, SiteOptions, SiteSize};
pub use media_types::MediaType;
pub use paths::{
    PathFault, RUNTIME_SCRIPT, case_collisions, check_folders, check_paths, hidden_paths,
    is_rule_file, is_runtime_path, path_fault, paths_behind_slugs,
};
pub use reader::{FileReader, ObjectSource};
pub use rules::{HeaderScope, RuleRedirect, SiteRules, keeps_from_edges};
pub use urls::url_path;
