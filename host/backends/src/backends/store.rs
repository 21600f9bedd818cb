//! Queries of backends, ledgers and actions in the control database.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::action_files::ActionFiles;
use super::actions::ActionVerdict;
use super::defaults::ActionDefaults;
use super::model::{ActionConflict, Backend, BackendError, LedgerEntry, StoredActionVersion};
use crate::config::{CapHolderKind, CapUsage, Config};
use crate::control::{ControlChange, Error, NamedColumnReader, Tx};
use crate::workspaces::Principal;
use svc_base::ids::{BackendId, ProjectId, WorkspaceId};
use svc_sandbox::AllowedStatement;

/// Bytes of a version of an action, in SQL.
const ACTION_BYTES: &str =
    "octet_length(sql) + coalesce(octet_length(note), 0) + coalesce(octet_length(defaults), 0)
    + coalesce(octet_length(files), 0) + octet_length(verdict) + octet_length(name)";
/// Bytes that an ended action counts for beside its name. A version of an action takes more, so that an end always frees some.
const ENDED_ACTION_BYTES: u64 = 32;
/// Columns of a version of an action.
const ACTION_COLUMNS: &str =
    "name, version, sql, defaults, files, checksum, note, created_at, verdict, gate";

const SELECT_BACKEND: &str = "SELECT id, project_id, realtime, agents, created_at FROM backends";

fn backend_from_row(row: &Row<'_>) -> rusqlite::Result<Backend> {
    Ok(Backend {
        id: row.get("id")?,
        project: row.get("project_id")?,
        realtime: row.get("realtime")?,
        agents: row.get("agents")?,
        created_at: row.get("created_at")?,
    })
}

pub(super) fn find_by_project(
    c: &Connection,
    project: &ProjectId,
) -> rusqlite::Result<Option<Backend>> {
    c.prepare_cached(&format!("{SELECT_BACKEND} WHERE project_id = ?1"))?
        .query_row([project], backend_from_row)
        .optional()
}

pub(super) fn exists(c: &Connection, id: &BackendId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM backends WHERE id = ?1)")?
        .query_row([id], |row| row.get(0))
}

pub(super) fn project_of(c: &Connection, id: &BackendId) -> rusqlite::Result<Option<ProjectId>> {
    c.prepare_cached("SELECT project_id FROM backends WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}

pub(super) fn ids(c: &Connection) -> rusqlite::Result<Vec<BackendId>> {
    c.prepare_cached("SELECT id FROM backends")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// The workspace that the threads of `w` count for: itself, or the first of all free workspaces that its founder created, which have
/// the threads of one.
const THREAD_HOLDER: &str = "CASE WHEN w.plan = 'free' AND w.founder_id IS NOT NULL
    THEN (SELECT min(f.id) FROM workspaces AS f WHERE f.founder_id = w.founder_id AND f.plan = 'free')
    ELSE w.id END";

/// Returns the workspace that the threads of each backend count for, if the project has a workspace.
pub(super) fn thread_holders(
    c: &Connection,
) -> rusqlite::Result<HashMap<BackendId, Option<WorkspaceId>>> {
    c.prepare_cached(&format!(
        "SELECT b.id, coalesce({THREAD_HOLDER}, p.workspace_id) FROM backends AS b
         LEFT JOIN projects AS p ON p.id = b.project_id
         LEFT JOIN workspaces AS w ON w.id = p.workspace_id"
    ))?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Returns the workspace that the threads of a workspace's backends count for.
pub(super) fn thread_holder(
    c: &Connection,
    workspace: &WorkspaceId,
) -> rusqlite::Result<WorkspaceId> {
    let holder = c
        .prepare_cached(&format!(
            "SELECT {THREAD_HOLDER} FROM workspaces AS w WHERE w.id = ?1"
        ))?
        .query_row([workspace], |row| row.get(0))
        .optional()?;
    Ok(holder.unwrap_or(*workspace))
}

/// Counts backends: all, those of free workspaces that users created, and those of the given workspaces.
pub(super) fn count_held(c: &Connection, workspaces: &[WorkspaceId]) -> rusqlite::Result<CapUsage> {
    let list = serde_json::to_string(workspaces)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    c.prepare_cached(
        "SELECT count(*), count(*) FILTER (WHERE w.plan = 'free' AND w.founder_id IS NOT NULL),
            count(*) FILTER (WHERE p.workspace_id IN (SELECT value FROM json_each(?1)))
         FROM backends b LEFT JOIN projects p ON p.id = b.project_id
            LEFT JOIN workspaces w ON w.id = p.workspace_id",
    )?
    .query_row([list], |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(CapUsage {
            all: number(0)?,
            strangers: number(1)?,
            own: number(2)?,
        })
    })
}

/// Refuses another backend of a workspace if the cap or the owner's share is reached.
pub(super) fn check_cap(
    c: &Connection,
    config: &Config,
    workspace: &WorkspaceId,
) -> Result<(), BackendError> {
    let owner = Principal::of_workspace(c, workspace).map_err(Error::from)?;
    let held = count_held(c, &owner.workspaces).map_err(Error::from)?;
    let kind = match owner.is_free_tier {
        true => CapHolderKind::NewOwner,
        false => CapHolderKind::Owner,
    };
    Ok(config.limits.backends_cap().check(kind, held, 1)?)
}

/// Adds a backend of a project in this workspace.
pub(super) fn insert(tx: &Tx<'_>, new: &Backend, workspace: &WorkspaceId) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO backends (id, project_id, realtime, created_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![new.id, new.project, new.realtime, new.created_at])?;
    let holder = thread_holder(tx, workspace)?;
    tx.note(ControlChange::BackendCreated(new.id, holder));
    Ok(())
}

/// Opens or closes the rooms of a backend; returns whether it exists.
pub(super) fn set_realtime(tx: &Tx<'_>, id: &BackendId, realtime: bool) -> Result<bool, Error> {
    let changed = tx
        .prepare_cached("UPDATE backends SET realtime = ?2 WHERE id = ?1")?
        .execute(params![id, realtime])?;
    if !realtime {
        tx.note(ControlChange::RealtimeOff(*id));
    }
    Ok(changed > 0)
}

/// Whether a backend exists and its rooms may be joined.
pub(super) fn is_realtime(c: &Connection, id: &BackendId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM backends WHERE id = ?1 AND realtime)")?
        .query_row([id], |row| row.get(0))
}

/// Allows or forbids agents to call a backend's actions; returns whether it exists.
pub(super) fn set_agents(tx: &Tx<'_>, id: &BackendId, agents: bool) -> Result<bool, Error> {
    let changed = tx
        .prepare_cached("UPDATE backends SET agents = ?2 WHERE id = ?1")?
        .execute(params![id, agents])?;
    Ok(changed > 0)
}

/// Whether a backend exists and agents may call its actions.
pub(super) fn allows_agents(c: &Connection, id: &BackendId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM backends WHERE id = ?1 AND agents)")?
        .query_row([id], |row| row.get(0))
}

/// Removes a project's backend with its ledger and actions; returns its id.
pub(super) fn remove(tx: &Tx<'_>, project: &ProjectId) -> Result<Option<BackendId>, Error> {
    let removed: Option<BackendId> = tx
        .prepare_cached("DELETE FROM backends WHERE project_id = ?1 RETURNING id")?
        .query_row([project], |row| row.get(0))
        .optional()?;
    if let Some(id) = removed {
        for table in ["ledger", "actions", "ended_actions"] {
            tx.prepare_cached(&format!("DELETE FROM {table} WHERE backend_id = ?1"))?
                .execute([id])?;
        }
        tx.note(ControlChange::BackendEnded(id));
    }
    Ok(removed)
}

/// Lists the backends that ledger or action rows refer to, by their ids as stored.
pub(super) fn referenced_ids(c: &Connection) -> rusqlite::Result<Vec<String>> {
    c.prepare(
        "SELECT backend_id FROM ledger UNION SELECT backend_id FROM actions
         UNION SELECT backend_id FROM ended_actions",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

/// Returns the ledger, oldest first.
pub(super) fn ledger(c: &Connection, id: &BackendId) -> rusqlite::Result<Vec<LedgerEntry>> {
    c.prepare_cached(
        "SELECT version, checksum, sql, note, applied_at FROM ledger
         WHERE backend_id = ?1 ORDER BY version",
    )?
    .query_map([id], |row| {
        Ok(LedgerEntry {
            version: row.get("version")?,
            checksum: row.get("checksum")?,
            sql: row.get("sql")?,
            note: row.get("note")?,
            applied_at: row.get("applied_at")?,
        })
    })?
    .collect()
}

/// Returns the version under which a script is in the ledger.
pub(super) fn recorded_version(
    c: &Connection,
    id: &BackendId,
    checksum: &str,
) -> rusqlite::Result<Option<u32>> {
    c.prepare_cached("SELECT version FROM ledger WHERE backend_id = ?1 AND checksum = ?2")?
        .query_row(params![id, checksum], |row| row.get(0))
        .optional()
}

/// Appends an entry to the ledger.
pub(super) fn append(tx: &Tx<'_>, id: &BackendId, entry: &LedgerEntry) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO ledger (backend_id, version, checksum, sql, note, applied_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        id,
        entry.version,
        entry.checksum,
        entry.sql,
        entry.note,
        entry.applied_at
    ])?;
    Ok(())
}

/// Returns the size of the ledger, of all versions of actions and of the names of ended ones, in bytes.
pub(super) fn definition_bytes(c: &Connection, id: &BackendId) -> rusqlite::Result<u64> {
    c.prepare_cached(&format!(
        "SELECT (SELECT coalesce(sum(octet_length(sql) + coalesce(octet_length(note), 0)), 0)
                 FROM ledger WHERE backend_id = ?1)
              + (SELECT coalesce(sum({ACTION_BYTES}), 0) FROM actions WHERE backend_id = ?1)
              + (SELECT coalesce(sum(octet_length(name) + {ENDED_ACTION_BYTES}), 0)
                 FROM ended_actions WHERE backend_id = ?1)"
    ))?
    .query_row([id], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// Returns the bytes that the end of an action takes off the size of the definitions.
pub(super) fn bytes_freed_by_end(
    c: &Connection,
    id: &BackendId,
    name: &str,
) -> rusqlite::Result<u64> {
    c.prepare_cached(&format!(
        "SELECT coalesce(sum({ACTION_BYTES}), 0) FROM actions WHERE backend_id = ?1 AND name = ?2"
    ))?
    .query_row(params![id, name], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
    .map(|bytes| bytes.saturating_sub(ended_bytes(name)))
}

/// Returns the bytes that a new version of an action adds to the size of the definitions.
pub(super) fn action_bytes(new: &StoredActionVersion) -> u64 {
    let note = new.note.as_deref().map_or(0, str::len);
    let defaults = new.defaults.column().map_or(0, str::len);
    let files = new.files.column().map_or(0, |files| files.len());
    let verdict = verdict_json(&new.verdict).len();
    let bytes = new.sql.len() + note + defaults + files + verdict + new.name.len();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns the bytes that the name of an ended action takes.
fn ended_bytes(name: &str) -> u64 {
    u64::try_from(name.len()).map_or(u64::MAX, |bytes| bytes + ENDED_ACTION_BYTES)
}

/// Returns the gate's verdict as JSON; the conversion cannot fail.
fn verdict_json(verdict: &AllowedStatement) -> String {
    serde_json::to_string(verdict).unwrap_or_default()
}

fn action_from_row(row: &Row<'_>) -> rusqlite::Result<StoredActionVersion> {
    let row = NamedColumnReader::new(row);
    let verdict: String = row.get("verdict")?;
    let verdict: AllowedStatement =
        serde_json::from_str(&verdict).map_err(|_| rusqlite::Error::InvalidQuery)?;
    let files: Option<String> = row.get("files")?;
    Ok(StoredActionVersion {
        name: row.get("name")?,
        version: row.get("version")?,
        sql: row.get("sql")?,
        defaults: ActionDefaults::from_column(row.get("defaults")?),
        files: ActionFiles::from_column(files.as_deref()).ok_or(rusqlite::Error::InvalidQuery)?,
        checksum: row.get("checksum")?,
        note: row.get("note")?,
        created_at: row.get("created_at")?,
        verdict,
        gate: row.get("gate")?,
    })
}

/// Lists the newest version of every action, by name.
pub(super) fn actions(
    c: &Connection,
    id: &BackendId,
) -> rusqlite::Result<Vec<StoredActionVersion>> {
    c.prepare_cached(&format!(
        "SELECT {ACTION_COLUMNS} FROM actions a
         WHERE backend_id = ?1 AND version = (SELECT max(version) FROM actions b
            WHERE b.backend_id = a.backend_id AND b.name = a.name)
         ORDER BY name"
    ))?
    .query_map([id], action_from_row)?
    .collect()
}

/// Lists the names of the actions, in their order.
pub(super) fn action_names(c: &Connection, id: &BackendId) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached("SELECT DISTINCT name FROM actions WHERE backend_id = ?1 ORDER BY name")?
        .query_map([id], |row| row.get(0))?
        .collect()
}

/// Returns the newest version of an action, if the action exists.
pub(super) fn newest_action(
    c: &Connection,
    id: &BackendId,
    name: &str,
) -> rusqlite::Result<Option<StoredActionVersion>> {
    c.prepare_cached(&format!(
        "SELECT {ACTION_COLUMNS} FROM actions WHERE backend_id = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1"
    ))?
    .query_row(params![id, name], action_from_row)
    .optional()
}

/// Returns a version of an action.
pub(super) fn action_version(
    c: &Connection,
    id: &BackendId,
    name: &str,
    version: u64,
) -> rusqlite::Result<Option<StoredActionVersion>> {
    c.prepare_cached(&format!(
        "SELECT {ACTION_COLUMNS} FROM actions WHERE backend_id = ?1 AND name = ?2 AND version = ?3"
    ))?
    .query_row(
        params![id, name, i64::try_from(version).unwrap_or(i64::MAX)],
        action_from_row,
    )
    .optional()
}

/// Lists versions of an action before a given one, newest first.
pub(super) fn action_versions(
    c: &Connection,
    id: &BackendId,
    name: &str,
    (before, most): (Option<u64>, u32),
) -> rusqlite::Result<Vec<StoredActionVersion>> {
    let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
    c.prepare_cached(&format!(
        "SELECT {ACTION_COLUMNS} FROM actions WHERE backend_id = ?1 AND name = ?2 AND version < ?3
         ORDER BY version DESC LIMIT ?4"
    ))?
    .query_map(params![id, name, before, most], action_from_row)?
    .collect()
}

/// Returns the number of an action's newest version, if the action exists.
pub(super) fn newest_version(
    c: &Connection,
    id: &BackendId,
    name: &str,
) -> rusqlite::Result<Option<u32>> {
    c.prepare_cached("SELECT max(version) FROM actions WHERE backend_id = ?1 AND name = ?2")?
        .query_row(params![id, name], |row| row.get(0))
}

/// Ends an action with all its versions, the newest of which is `version`.
pub(super) fn end_action(
    tx: &Tx<'_>,
    id: &BackendId,
    name: &str,
    version: u32,
) -> Result<(), Error> {
    tx.prepare_cached("DELETE FROM actions WHERE backend_id = ?1 AND name = ?2")?
        .execute(params![id, name])?;
    tx.prepare_cached("INSERT INTO ended_actions (backend_id, name, version) VALUES (?1, ?2, ?3)")?
        .execute(params![id, name, version])?;
    Ok(())
}

/// Takes the number of the last version of an ended action, which comes again; 0 if there was none.
pub(super) fn take_ended_version(tx: &Tx<'_>, id: &BackendId, name: &str) -> Result<u32, Error> {
    let last = tx
        .prepare_cached(
            "DELETE FROM ended_actions WHERE backend_id = ?1 AND name = ?2 RETURNING version",
        )?
        .query_row(params![id, name], |row| row.get(0))
        .optional()?;
    Ok(last.unwrap_or(0))
}

pub(super) fn insert_action(
    tx: &Tx<'_>,
    id: &BackendId,
    new: &StoredActionVersion,
) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO actions
            (backend_id, name, version, sql, defaults, files, checksum, note, created_at, verdict, gate)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        id,
        new.name,
        new.version,
        new.sql,
        new.defaults.column(),
        new.files.column(),
        new.checksum,
        new.note,
        new.created_at,
        verdict_json(&new.verdict),
        new.gate,
    ])?;
    Ok(())
}

/// Stores the verdict of a newer gate on a version of an action.
pub(super) fn set_verdict(tx: &Tx<'_>, judged: &ActionVerdict) -> Result<(), Error> {
    tx.prepare_cached(
        "UPDATE actions SET verdict = ?4, gate = ?5
         WHERE backend_id = ?1 AND name = ?2 AND version = ?3",
    )?
    .execute(params![
        judged.backend,
        judged.name,
        judged.version,
        verdict_json(&judged.verdict),
        judged.gate
    ])?;
    tx.note(ControlChange::ActionJudged(judged.backend));
    Ok(())
}

/// Lists all actions, each with the version that it must have and whether it is to end, that have other versions than expected. Without
/// a backend there is none.
pub(super) fn version_conflicts<'a>(
    c: &Connection,
    id: Option<&BackendId>,
    actions: impl Iterator<Item = (&'a str, Option<u64>, bool)>,
) -> rusqlite::Result<Vec<ActionConflict>> {
    let mut conflicts = Vec::new();
    for (name, expected, is_removal) in actions {
        let Some(expected) = expected else { continue };
        let newest = id.map(|id| newest_version(c, id, name)).transpose()?;
        let found = newest.flatten().unwrap_or(0);
        if u64::from(found) != expected && !(is_removal && found == 0) {
            conflicts.push(ActionConflict {
                name: name.to_owned(),
                expected,
                found,
            });
        }
    }
    Ok(conflicts)
}

/// Finds a version of an action.
pub(super) fn find_version(
    c: &Connection,
    id: &BackendId,
    (name, version): &(String, u64),
) -> Result<StoredActionVersion, BackendError> {
    let found = action_version(c, id, name, *version).map_err(Error::from)?;
    if let Some(found) = found {
        return Ok(found);
    }
    let newest = newest_version(c, id, name).map_err(Error::from)?;
    Err(match newest {
        None => BackendError::NoAction(name.clone()),
        Some(_) => BackendError::NoActionVersion {
            name: name.clone(),
            version: *version,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    #[test]
    fn free_workspaces_of_one_founder_have_the_threads_of_one() {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(
            "CREATE TABLE workspaces (id TEXT, plan TEXT, founder_id TEXT);
             CREATE TABLE projects (id TEXT, workspace_id TEXT);
             CREATE TABLE backends (id TEXT, project_id TEXT);",
        )
        .unwrap();
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let mut ids = [(); 5].map(|()| WorkspaceId::new(&clock, &random).unwrap());
        ids.sort();
        let [first, second, paid, operators, other] = ids;
        let mut expected = HashMap::new();
        for (id, plan, founder, holder) in [
            (first, "free", Some("ann"), first),
            (second, "free", Some("ann"), first),
            (paid, "pro", Some("ann"), paid),
            (operators, "free", None, operators),
            (other, "free", Some("bob"), other),
        ] {
            let project = ProjectId::new(&clock, &random).unwrap();
            let backend = BackendId::new(&clock, &random).unwrap();
            c.execute("INSERT INTO projects VALUES (?1, ?2)", params![project, id])
                .unwrap();
            c.execute(
                "INSERT INTO backends VALUES (?1, ?2)",
                params![backend, project],
            )
            .unwrap();
            c.execute(
                "INSERT INTO workspaces VALUES (?1, ?2, ?3)",
                params![id, plan, founder],
            )
            .unwrap();
            expected.insert(backend, (id, holder));
        }
        let holders = thread_holders(&c).unwrap();
        for (backend, (id, holder)) in expected {
            assert_eq!(holders[&backend], Some(holder));
            assert_eq!(thread_holder(&c, &id).unwrap(), holder);
        }
    }
}
