//! The files that the process may have open, divided between tenants' databases and connections.

use rustix::process::{Resource, getrlimit};
use svc_database::most_open_databases;

use super::Limits;

/// Files of a database that is used a lot: connections with their logs, the memory that they share, and the history. Most have half of
/// them.
const FILES_OF_DATABASE: u64 = 12;
/// Files of everything else: listeners, content, the control database, guests.
const OTHER_FILES: u64 = 512;
/// Connections that are admitted however few files may be open.
const LEAST_CONNECTIONS: u64 = 64;
/// Databases that are kept open however few files may be open.
const LEAST_DATABASES: u64 = 16;

/// How many databases and connections the process has files for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFileShares {
    /// Databases that are kept open: as many as `open_databases` says, or fewer.
    pub databases: u64,
    /// Connections with clients.
    pub connections: u64,
}

impl OpenFileShares {
    /// Divides the files that this process may have open.
    pub fn of_process(limits: &Limits) -> Self {
        let files = getrlimit(Resource::Nofile).current;
        Self::divide(limits.open_databases, files.unwrap_or(u64::MAX))
    }

    /// Divides files. Databases get three quarters of them at most.
    fn divide(open_databases: u64, files: u64) -> Self {
        let most = files / 4 * 3 / FILES_OF_DATABASE;
        let mut databases = open_databases.max(LEAST_DATABASES);
        if most_open_databases(databases) > most {
            databases = (most / 5 * 4)
                .min(most.saturating_sub(16))
                .max(LEAST_DATABASES);
        }
        let of_databases = most_open_databases(databases).saturating_mul(FILES_OF_DATABASE);
        let taken = of_databases.saturating_add(OTHER_FILES.min(files / 8));
        Self {
            databases,
            connections: files.saturating_sub(taken).max(LEAST_CONNECTIONS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_and_connections_fit_into_the_files() {
        for (wanted, files, databases, connections) in [
            (256, 1_048_576, 256, 1_044_224),
            (1_000, 20_000, 1_000, 4_488),
            (10_000, 1_048_576, 10_000, 898_064),
            (256, 4_096, 204, 524),
            (256, 1_024, 48, 128),
            (256, 256, 16, 64),
            (256, u64::MAX, 256, u64::MAX - 4_352),
        ] {
            let found = OpenFileShares::divide(wanted, files);
            let expected = OpenFileShares {
                databases,
                connections,
            };
            assert_eq!(found, expected, "{wanted} of {files} files");
        }
    }
}
