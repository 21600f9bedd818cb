//! Requests to the ledger, each on the rows that its transaction sees.

use svc_base::positions::{Checksum, CommitPosition, Entry};

use super::store::{Key, Refusal, Row, View};
use crate::types::{
    Base, BeatCount, ClaimOutcome, DatabaseEntry, DatabaseName, FoundEntry, KeptBases, LedgerError,
    Node, NodeState, Place, RunId,
};

/// Rules of the ledger. Tests switch each off, to see that something breaks without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A run appends only while it lives.
    pub(crate) fence: bool,
    /// A commit names the state that it continues.
    pub(crate) chain: bool,
    /// A place is taken from the dead alone.
    pub(crate) claim_from_dead: bool,
    /// A run is buried only if its beat is as it was seen.
    pub(crate) compare_beat: bool,
    /// A look-up counts as a beat, so that what it finds is durable.
    pub(crate) find_beats: bool,
    /// Reading a tail counts as a beat, in the same way.
    pub(crate) tail_beats: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            fence: true,
            chain: true,
            claim_from_dead: true,
            compare_beat: true,
            find_beats: true,
            tail_beats: true,
        }
    }
}

fn node(view: &View<'_>, run: RunId) -> Result<Option<NodeState>, Refusal> {
    match view.lock(&Key::Node(run))? {
        Some(Row::Node(state)) => Ok(Some(state.clone())),
        _ => Ok(None),
    }
}

fn place(view: &View<'_>, database: DatabaseName) -> Result<Option<Place>, Refusal> {
    match view.lock(&Key::Place(database))? {
        Some(Row::Place(place)) => Ok(Some(*place)),
        _ => Ok(None),
    }
}

/// Counts a beat of a run, if it lives.
pub(super) fn count_beat(view: &mut View<'_>, run: RunId) -> Result<BeatCount, Refusal> {
    let state = node(view, run)?.filter(|state| state.live);
    let mut state = state.ok_or(LedgerError::Fenced)?;
    state.beat.0 += 1;
    let beat = state.beat;
    view.set(Key::Node(run), Some(Row::Node(state)))?;
    Ok(beat)
}

fn lives(view: &View<'_>, run: RunId) -> bool {
    matches!(view.get(&Key::Node(run)), Some(Row::Node(state)) if state.live)
}

/// All keys of a database's commits, or of its bases.
fn all(
    key: fn(DatabaseName, CommitPosition) -> Key,
    database: DatabaseName,
) -> std::ops::RangeInclusive<Key> {
    key(database, CommitPosition(0))..=key(database, CommitPosition(u64::MAX))
}

pub(crate) fn join(view: &mut View<'_>, joining: &Node) -> Result<(), Refusal> {
    let state = node(view, joining.run)?.unwrap_or_else(|| NodeState {
        node: joining.clone(),
        live: true,
        beat: BeatCount::default(),
        leaving: false,
        serves: false,
        removed: false,
    });
    view.set(Key::Node(joining.run), Some(Row::Node(state)))
}

/// All runs, as they were before this transaction.
fn nodes(view: &View<'_>) -> Vec<NodeState> {
    let first = Key::Node(uuid::Uuid::nil().into());
    let rows = view.range(first..=Key::Node(uuid::Uuid::max().into()));
    let states = rows.into_iter().filter_map(|row| match row {
        Row::Node(state) => Some(state.clone()),
        _ => None,
    });
    states.collect()
}

pub(crate) fn beat(view: &mut View<'_>, run: RunId) -> Result<Vec<NodeState>, Refusal> {
    count_beat(view, run)?;
    let mut states = nodes(view);
    // Row of the run as the transaction leaves it.
    let own = node(view, run)?;
    for state in &mut states {
        if let Some(own) = own.as_ref().filter(|own| own.node.run == state.node.run) {
            state.clone_from(own);
        }
    }
    Ok(states)
}

/// Checksum of the state of a database after a commit: that of the commit, else of the base there.
fn state_after(
    view: &View<'_>,
    database: DatabaseName,
    position: CommitPosition,
) -> Option<Checksum> {
    match view.get(&Key::Commit(database, position)) {
        Some(Row::Commit(_, entry)) => Some(entry.after),
        _ => match view.get(&Key::Base(database, position)) {
            Some(Row::Base(base)) => Some(base.state),
            _ => None,
        },
    }
}

/// Whether the ledger has this position or a later one. Commits before the newest base are gone.
fn is_past(view: &View<'_>, database: DatabaseName, position: CommitPosition) -> bool {
    let last = CommitPosition(u64::MAX);
    let commits = Key::Commit(database, position)..=Key::Commit(database, last);
    let bases = Key::Base(database, position)..=Key::Base(database, last);
    !view.range(commits).is_empty() || !view.range(bases).is_empty()
}

pub(crate) fn append(
    rules: Rules,
    view: &mut View<'_>,
    run: RunId,
    entries: &[DatabaseEntry],
) -> Result<(), Refusal> {
    if rules.fence {
        count_beat(view, run)?;
    }
    for DatabaseEntry { database, entry } in entries {
        let before = entry.position.0.checked_sub(1).map(CommitPosition);
        let before = before.and_then(|before| state_after(view, *database, before));
        let key = Key::Commit(*database, entry.position);
        let taken = view.lock(&key)?.is_some();
        let continues = before == Some(entry.before) && !is_past(view, *database, entry.position);
        if taken || rules.chain && !continues {
            return Err(LedgerError::NotNext.into());
        }
        view.set(key, Some(Row::Commit(run, entry.clone())))?;
    }
    Ok(())
}

pub(crate) fn find(
    rules: Rules,
    view: &mut View<'_>,
    run: RunId,
    at: &[(DatabaseName, CommitPosition)],
) -> Result<Vec<Option<FoundEntry>>, Refusal> {
    if rules.find_beats {
        count_beat(view, run)?;
    }
    let found =
        at.iter().map(
            |(database, position)| match view.get(&Key::Commit(*database, *position)) {
                Some(Row::Commit(run, entry)) => Some(FoundEntry {
                    run: *run,
                    after: entry.after,
                }),
                _ => None,
            },
        );
    Ok(found.collect())
}

pub(crate) fn bury(
    rules: Rules,
    view: &mut View<'_>,
    run: RunId,
    dead: RunId,
    seen: Option<BeatCount>,
) -> Result<bool, Refusal> {
    // A run that buries itself has the beat that was seen before this one.
    let before = node(view, dead)?.map(|state| state.beat);
    count_beat(view, run)?;
    let Some(mut state) = node(view, dead)?.filter(|state| state.live) else {
        return Ok(true);
    };
    if rules.compare_beat && seen.is_some() && seen != before {
        return Ok(false);
    }
    state.live = false;
    state.leaving |= run == dead;
    view.set(Key::Node(dead), Some(Row::Node(state)))?;
    Ok(true)
}

pub(super) fn note_serving(view: &mut View<'_>, run: RunId) -> Result<(), Refusal> {
    count_beat(view, run)?;
    let Some(mut state) = node(view, run)? else {
        return Ok(());
    };
    state.serves = true;
    view.set(Key::Node(run), Some(Row::Node(state)))
}

pub(super) fn remove_node(view: &mut View<'_>, run: RunId, name: &str) -> Result<bool, Refusal> {
    count_beat(view, run)?;
    let mut states = nodes(view);
    states.retain(|state| state.node.name == name);
    if states.iter().any(|state| state.live) {
        return Ok(false);
    }
    for mut state in states {
        state.removed = true;
        view.set(Key::Node(state.node.run), Some(Row::Node(state)))?;
    }
    Ok(true)
}

pub(crate) fn claim(
    rules: Rules,
    view: &mut View<'_>,
    run: RunId,
    database: DatabaseName,
) -> Result<ClaimOutcome, Refusal> {
    let epoch = count_beat(view, run)?;
    if let Some(place) = place(view, database)? {
        let others = place.run != run && lives(view, place.run);
        if others && rules.claim_from_dead {
            return Ok(ClaimOutcome::Held(place));
        }
    }
    let place = Place {
        database,
        run,
        epoch,
    };
    view.set(Key::Place(database), Some(Row::Place(place)))?;
    Ok(ClaimOutcome::Claimed(place))
}

pub(crate) fn release(view: &mut View<'_>, released: Place) -> Result<(), Refusal> {
    count_beat(view, released.run)?;
    if place(view, released.database)? == Some(released) {
        view.set(Key::Place(released.database), None)?;
    }
    Ok(())
}

pub(crate) fn places(view: &View<'_>) -> Vec<Place> {
    // Commits are the next keys after places, and are left out below.
    let after = Key::Commit(DatabaseName::Control, CommitPosition(0));
    let rows = view.range(Key::Place(DatabaseName::Control)..=after);
    let places = rows.into_iter().filter_map(|row| match row {
        Row::Place(place) => Some(*place),
        _ => None,
    });
    places.collect()
}

pub(crate) fn tail(
    rules: Rules,
    view: &mut View<'_>,
    reader: Option<RunId>,
    database: DatabaseName,
    after: CommitPosition,
    max_bytes: usize,
) -> Result<Vec<Entry>, Refusal> {
    if let Some(run) = reader.filter(|_| rules.tail_beats) {
        count_beat(view, run)?;
    }
    let first = Key::Commit(database, after.next());
    let rows = view.range(first..=Key::Commit(database, CommitPosition(u64::MAX)));
    let mut bytes = 0;
    let mut entries = Vec::new();
    for row in rows {
        let Row::Commit(_, entry) = row else { continue };
        bytes += entry.body.len();
        if bytes > max_bytes && !entries.is_empty() {
            break;
        }
        entries.push(entry.clone());
    }
    Ok(entries)
}

pub(crate) fn bases(
    view: &mut View<'_>,
    reader: Option<RunId>,
    database: DatabaseName,
) -> Result<Vec<Base>, Refusal> {
    if let Some(run) = reader {
        count_beat(view, run)?;
    }
    let rows = view.range(all(Key::Base, database)).into_iter().rev();
    let bases = rows.filter_map(|row| match row {
        Row::Base(base) => Some(base.clone()),
        _ => None,
    });
    Ok(bases.collect())
}

/// Counts a beat of a run that has the place of a database.
fn as_owner(view: &mut View<'_>, run: RunId, database: DatabaseName) -> Result<(), Refusal> {
    count_beat(view, run)?;
    match place(view, database)? {
        Some(place) if place.run == run => Ok(()),
        _ => Err(LedgerError::NotPlaced.into()),
    }
}

pub(crate) fn add_base(view: &mut View<'_>, run: RunId, base: &Base) -> Result<(), Refusal> {
    as_owner(view, run, base.database)?;
    let there = state_after(view, base.database, base.position);
    let is_other = there.is_some_and(|state| state != base.state);
    let has_commits = !view.range(all(Key::Commit, base.database)).is_empty();
    let is_ahead = has_commits && !is_past(view, base.database, base.position);
    if is_other || is_ahead {
        return Err(LedgerError::NotNext.into());
    }
    let key = Key::Base(base.database, base.position);
    if view.lock(&key)?.is_none() {
        view.set(key, Some(Row::Base(base.clone())))?;
    }
    Ok(())
}

pub(crate) fn trim(
    view: &mut View<'_>,
    run: RunId,
    database: DatabaseName,
    kept: KeptBases,
) -> Result<u64, Refusal> {
    as_owner(view, run, database)?;
    let bases = view.range(all(Key::Base, database)).into_iter();
    let bases = bases.filter_map(|row| match row {
        Row::Base(base) => Some(base.position),
        _ => None,
    });
    let bases: Vec<CommitPosition> = bases.collect();
    let (needless, kept) = bases.split_at(bases.len().saturating_sub(kept.count().into()));
    let Some(kept) = kept.first() else {
        return Ok(0);
    };
    for position in needless {
        view.set(Key::Base(database, *position), None)?;
    }
    let mut deleted = 0;
    for row in view.range(all(Key::Commit, database)) {
        if let Row::Commit(_, entry) = row
            && entry.position < *kept
        {
            view.set(Key::Commit(database, entry.position), None)?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

pub(crate) fn forget(
    view: &mut View<'_>,
    run: RunId,
    database: DatabaseName,
) -> Result<(), Refusal> {
    count_beat(view, run)?;
    match place(view, database)? {
        None => return Ok(()),
        Some(place) if place.run != run => return Err(LedgerError::NotPlaced.into()),
        Some(_) => {}
    }
    let rows = view.range(all(Key::Commit, database)).into_iter();
    let rows = rows.chain(view.range(all(Key::Base, database)));
    for row in rows {
        let key = match row {
            Row::Commit(_, entry) => Key::Commit(database, entry.position),
            Row::Base(base) => Key::Base(database, base.position),
            Row::Flush | Row::Visits(..) | Row::Node(_) | Row::Place(_) => continue,
        };
        view.set(key, None)?;
    }
    view.set(Key::Place(database), None)
}
