//! Publication: renders and stores a source, and makes it the page at a slug.
//!
//! ```text
//! source ─► render ─► compress, store ─► one transaction ─────────► memory forgets ─► answered ─► the edge forgets
//!                      durable, pinned    rows, purge, change         before the answer              from its queue
//!                    │ a crash here leaves content without a row,   │ a crash here loses nothing: memory is gone,
//!                    │ which the collector removes                  │ and the purge is in its queue
//! ```

mod capacity;
mod error;
mod page_source;
mod pipeline;
mod problems;
pub mod runtime;
mod slugs;
mod timings;

pub use capacity::{CapacityChecker, SharePublisher};
pub use error::PublishError;
pub use page_source::PageSource;
pub use pipeline::{PublicationPipeline, RenderedPage};
pub use slugs::SlugReservations;

pub(super) use capacity::{CapUsageChecker, FrontendsToCount, ShareCapHolder};
pub(super) use page_source::PagePlacement;
pub(super) use pipeline::{
    PublishedDigests, RendererAndRuntime, StoredPublication, StoredSourceAndPage,
};
pub(super) use slugs::ReservedSlug;
