//! Errand: what a node of several has counted. It is added once, however often it is sent.

use serde::{Deserialize, Serialize};

use super::store::{self, HourOfProject, HourPlace};
use crate::control::{self, ErrandWork, Tx};
use svc_base::clock::Timestamp;

/// Age after which the ids of flushes are deleted, in seconds.
const FLUSH_ID_SECONDS: i64 = 86_400;

/// Counts of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedHours {
    /// Id of the flush.
    pub flush: i64,
    pub hours: Vec<HourOfProject>,
    pub at: Timestamp,
}

impl ErrandWork for SharedHours {
    const KIND: &'static str = "shared_hours";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), control::Error> {
        if !store::is_new_flush(tx, self.flush, self.at)? {
            return Ok(());
        }
        let mut there = Vec::with_capacity(self.hours.len());
        for hour in self.hours {
            // A node may not know yet that a project has ended.
            if store::has_project(tx, &hour.0)? {
                there.push(hour);
            }
        }
        HourPlace::Shared.add(tx, &there)?;
        store::forget_flushes(tx, self.at.plus_seconds(-FLUSH_ID_SECONDS))?;
        Ok(())
    }
}
