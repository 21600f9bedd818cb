//! Foundations of the other packages: identifiers, time, randomness, the server's own files, and copies of SQLite databases.
//!
//! Nothing here knows a domain, a protocol or a setting.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod base32;
pub mod clock;
mod counts;
pub mod digest;
pub mod disk;
pub mod fault;
pub mod file_lock;
pub mod flow;
pub mod ids;
pub mod invisible;
pub mod json_object;
pub mod memory_cache;
pub mod names;
pub mod numbers;
mod pluralize;
pub mod positions;
mod processor;
pub mod random;
pub mod sqlite;
mod stopwatch;
pub mod sync;
pub mod terminal;
pub mod threads;
pub mod work_state;

pub use counts::CountsByKey;
pub use pluralize::pluralize;
pub use processor::ThreadCpuStopwatch;
pub use stopwatch::Stopwatch;
