//! Views of deployments, and the flushes that have added to them. No flush is forgotten here: there is no clock.

use std::collections::BTreeMap;

use svc_base::ids::DeploymentId;
use uuid::Uuid;

use super::requests::count_beat;
use super::store::{Key, Refusal, Row, View};
use crate::types::RunId;

/// Largest sum, as the rows of a server have it.
const MOST: u64 = u64::MAX >> 1;

pub(super) fn add(
    view: &mut View<'_>,
    run: RunId,
    flush: Uuid,
    counts: &[(DeploymentId, u64)],
) -> Result<Vec<(DeploymentId, u64)>, Refusal> {
    count_beat(view, run)?;
    let flush = Key::Flush(flush);
    let is_new = view.lock(&flush)?.is_none();
    if is_new {
        view.set(flush, Some(Row::Flush))?;
    }
    let mut there = BTreeMap::new();
    for (id, count) in counts {
        let key = Key::Visits(*id);
        let before = match view.lock(&key)? {
            Some(Row::Visits(_, before)) => Some(*before),
            _ => None,
        };
        let after = match is_new {
            true => Some(before.unwrap_or(0).saturating_add(*count).min(MOST)),
            false => before,
        };
        let Some(after) = after else { continue };
        if is_new {
            view.set(key, Some(Row::Visits(*id, after)))?;
        }
        there.insert(*id, after);
    }
    Ok(there.into_iter().collect())
}

pub(super) fn after(
    view: &mut View<'_>,
    reader: Option<RunId>,
    after: Option<DeploymentId>,
    most: usize,
) -> Result<Vec<(DeploymentId, u64)>, Refusal> {
    if let Some(run) = reader {
        count_beat(view, run)?;
    }
    // The keys before and after those of views are those of flushes and of runs, which are left out.
    let first = after.map_or(Key::Flush(Uuid::max()), Key::Visits);
    let rows = view.range(first..=Key::Node(Uuid::nil().into()));
    let counts = rows.into_iter().filter_map(|row| match row {
        Row::Visits(id, count) if Some(*id) != after => Some((*id, *count)),
        _ => None,
    });
    Ok(counts.take(most).collect())
}

pub(super) fn forget(
    view: &mut View<'_>,
    run: RunId,
    gone: &[DeploymentId],
) -> Result<(), Refusal> {
    count_beat(view, run)?;
    for id in gone {
        view.set(Key::Visits(*id), None)?;
    }
    Ok(())
}
