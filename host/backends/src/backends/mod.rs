//! Backends: one database per project, whose schema grows by migrations, and which visitors reach through named actions.

mod action_changes;
mod action_files;
mod actions;
mod agents;
pub mod calls;
pub mod changes;
pub mod check;
pub mod copies;
mod defaults;
mod drift;
mod dry_runs;
pub mod export;
mod file_changes;
mod files;
pub mod history;
mod judging;
mod migrations;
mod mirror;
pub mod model;
mod nesting;
mod occupancy;
pub mod operations;
mod problems;
pub mod releases;
pub mod requests;
pub mod routes;
pub mod scope;
mod service;
mod store;
pub mod stored_sql;
mod verdicts;
pub mod views;

pub use action_changes::{
    ActionChangeTarget, ActionChanges, ChangedActions, apply as apply_action_changes,
};
pub use action_files::{ActionFiles, FilesRequest, PICTURE_SIZES};
pub use actions::{ActionDefinitions, ActionVerdict};
pub use defaults::ActionDefaults;
pub use judging::{GatedBatch, JudgedAction, PendingSchema, PreparationError};
pub use migrations::MigrationService;
pub use model::{Backend, BackendError};
pub use occupancy::{RoomOccupancy, RoomOccupancySource};
pub use service::{Backends, NewBackend};
