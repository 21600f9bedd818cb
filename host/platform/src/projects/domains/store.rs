//! Rows of domains.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::model::{Domain, DomainState};
use crate::config::Config;
use crate::control::{ControlChange, Error, NamedColumnReader, Tx};
use crate::edge;
use crate::tls::ServedDomain;
use svc_base::clock::Timestamp;
use svc_base::ids::{ProjectId, WorkspaceId};

const SELECT_DOMAIN: &str = "SELECT d.project_id, d.name, d.state, d.redirect_to, d.created_at, d.verified_at, d.checked_at, \
    d.pending_since, d.failing_since, d.check_at FROM domains d";

fn domain_from_row(row: &Row<'_>) -> rusqlite::Result<Domain> {
    let row = NamedColumnReader::new(row);
    let state: String = row.get("state")?;
    let state: DomainState = state.parse().map_err(|error: String| {
        rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, error.into())
    })?;
    Ok(Domain {
        project: row.get("project_id")?,
        name: row.get("name")?,
        state,
        redirect_to: row.get("redirect_to")?,
        created_at: row.get("created_at")?,
        verified_at: row.get("verified_at")?,
        checked_at: row.get("checked_at")?,
        pending_since: row.get("pending_since")?,
        failing_since: row.get("failing_since")?,
        check_at: row.get("check_at")?,
    })
}

/// Finds a domain of a project.
pub(super) fn find(
    c: &Connection,
    project: &ProjectId,
    name: &str,
) -> rusqlite::Result<Option<Domain>> {
    c.prepare_cached(&format!(
        "{SELECT_DOMAIN} WHERE d.project_id = ?1 AND d.name = ?2"
    ))?
    .query_row(params![project, name], domain_from_row)
    .optional()
}

/// Lists the domains of a project, oldest first.
pub(super) fn list(c: &Connection, project: &ProjectId) -> rusqlite::Result<Vec<Domain>> {
    c.prepare_cached(&format!(
        "{SELECT_DOMAIN} WHERE d.project_id = ?1 ORDER BY d.rowid"
    ))?
    .query_map([project], domain_from_row)?
    .collect()
}

/// Lists all domains, by name.
pub(super) fn list_all(c: &Connection) -> rusqlite::Result<Vec<Domain>> {
    c.prepare(&format!("{SELECT_DOMAIN} ORDER BY d.name, d.rowid"))?
        .query_map([], domain_from_row)?
        .collect()
}

/// Counts the domains of a project.
pub(super) fn count(c: &Connection, project: &ProjectId) -> rusqlite::Result<u64> {
    c.prepare_cached("SELECT count(*) FROM domains WHERE project_id = ?1")?
        .query_row([project], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// Finds the domain that a name is served by, whichever project has it.
pub(super) fn find_served(c: &Connection, name: &str) -> rusqlite::Result<Option<Domain>> {
    c.prepare_cached(&format!(
        "{SELECT_DOMAIN} WHERE d.name = ?1 AND d.state IN ('active', 'failing')"
    ))?
    .query_row([name], domain_from_row)
    .optional()
}

/// Whether a name is served as a domain of a project.
pub fn is_served_by(c: &Connection, project: &ProjectId, name: &str) -> rusqlite::Result<bool> {
    let found = find(c, project, name)?;
    Ok(found.is_some_and(|domain| domain.state.is_served()))
}

/// Lists what is due to be checked, the longest first.
pub(super) fn list_due(
    c: &Connection,
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<Vec<(ProjectId, String)>> {
    c.prepare_cached(
        "SELECT project_id, name FROM domains WHERE check_at <= ?1 ORDER BY check_at LIMIT ?2",
    )?
    .query_map(params![now, most], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

/// Lists the domains that are served, each with the label of its project.
pub(super) fn list_served(c: &Connection) -> rusqlite::Result<Vec<ServedDomain>> {
    c.prepare_cached(
        "SELECT d.name, p.host_label, d.redirect_to FROM domains d JOIN projects p ON p.id = d.project_id
         WHERE d.state IN ('active', 'failing') AND p.host_label IS NOT NULL",
    )?
    .query_map([], |row| {
        Ok(ServedDomain {
            name: row.get(0)?,
            host_label: row.get(1)?,
            redirect_to: row.get(2)?,
        })
    })?
    .collect()
}

/// Lists the names that are served, or that may be again once DNS proves them.
pub(super) fn list_kept(c: &Connection) -> rusqlite::Result<HashSet<String>> {
    c.prepare("SELECT DISTINCT name FROM domains WHERE state <> 'lost'")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Finds the workspace of the project that a name is active for.
pub(super) fn workspace_of_active(
    c: &Connection,
    name: &str,
) -> rusqlite::Result<Option<WorkspaceId>> {
    c.prepare_cached(
        "SELECT p.workspace_id FROM domains d JOIN projects p ON p.id = d.project_id
         WHERE d.name = ?1 AND d.state = 'active'",
    )?
    .query_row([name], |row| row.get(0))
    .optional()
}

/// Counts the domains that are served.
pub(super) fn count_served(c: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM domains WHERE state IN ('active', 'failing')";
    c.prepare_cached(sql)?
        .query_row([], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// Lists the served domains of the project with a label.
pub fn served_names(c: &Connection, host_label: &str) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached(
        "SELECT d.name FROM domains d JOIN projects p ON p.id = d.project_id
         WHERE p.host_label = ?1 AND d.state IN ('active', 'failing')",
    )?
    .query_map([host_label], |row| row.get(0))?
    .collect()
}

/// Returns the label of a project that has an origin.
pub(super) fn label_of(c: &Connection, project: &ProjectId) -> rusqlite::Result<Option<String>> {
    c.prepare_cached("SELECT host_label FROM projects WHERE id = ?1")?
        .query_row([project], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// Stores a domain, new or changed.
pub(super) fn put(tx: &Tx<'_>, domain: &Domain) -> Result<(), Error> {
    tx.prepare_cached(
        "INSERT INTO domains (project_id, name, state, redirect_to, created_at, verified_at, checked_at, pending_since,
            failing_since, check_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (project_id, name) DO UPDATE SET state = excluded.state, redirect_to = excluded.redirect_to,
            verified_at = excluded.verified_at, checked_at = excluded.checked_at, pending_since = excluded.pending_since,
            failing_since = excluded.failing_since, check_at = excluded.check_at",
    )?
    .execute(params![
        domain.project,
        domain.name,
        domain.state.as_str(),
        domain.redirect_to,
        domain.created_at,
        domain.verified_at,
        domain.checked_at,
        domain.pending_since,
        domain.failing_since,
        domain.check_at,
    ])?;
    Ok(())
}

/// Notes that a domain is served, or is served otherwise than before; an edge forgets what it had of the host.
pub(super) fn announce_served(
    tx: &Tx<'_>,
    config: &Config,
    domain: &Domain,
    now: Timestamp,
) -> Result<(), Error> {
    if let Some(host_label) = label_of(tx, &domain.project)? {
        tx.note(ControlChange::DomainServed {
            name: domain.name.clone(),
            host_label,
            redirect_to: domain.redirect_to.clone(),
        });
    }
    purge(tx, config, &domain.name, now)
}

/// Notes that a domain is served no more; an edge forgets the host.
///
/// # Errors
/// The control database's.
pub fn announce_end(tx: &Tx<'_>, config: &Config, name: &str, now: Timestamp) -> Result<(), Error> {
    tx.note(ControlChange::DomainEnded(name.to_owned()));
    purge(tx, config, name, now)
}

fn purge(tx: &Tx<'_>, config: &Config, name: &str, now: Timestamp) -> Result<(), Error> {
    match config.edge {
        Some(_) => edge::enqueue_purge(tx, &format!("{name}/"), now),
        None => Ok(()),
    }
}

/// Removes a domain of a project; returns whether there was one.
pub(super) fn remove(
    tx: &Tx<'_>,
    config: &Config,
    (project, name): (&ProjectId, &str),
    now: Timestamp,
) -> Result<bool, Error> {
    let found = find(tx, project, name)?;
    tx.prepare_cached("DELETE FROM domains WHERE project_id = ?1 AND name = ?2")?
        .execute(params![project, name])?;
    if found
        .as_ref()
        .is_some_and(|domain| domain.state.is_served())
    {
        announce_end(tx, config, name, now)?;
    }
    Ok(found.is_some())
}

/// Removes all domains of a project.
pub(in crate::projects) fn remove_all(
    tx: &Tx<'_>,
    config: &Config,
    project: &ProjectId,
    now: Timestamp,
) -> Result<(), Error> {
    for domain in list(tx, project)? {
        remove(tx, config, (project, &domain.name), now)?;
    }
    Ok(())
}

/// Whether the operator has taken a name down.
pub(super) fn is_disabled(c: &Connection, name: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM disabled_domains WHERE name = ?1)")?
        .query_row([name], |row| row.get(0))
}

/// Lists the names that the operator has taken down.
pub(super) fn list_disabled(c: &Connection) -> rusqlite::Result<Vec<String>> {
    c.prepare_cached("SELECT name FROM disabled_domains ORDER BY name")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Takes a name down, or puts it back; returns whether that is a change.
pub(super) fn set_disabled(
    tx: &Tx<'_>,
    name: &str,
    disabled: bool,
    now: Timestamp,
) -> Result<bool, Error> {
    let changed = match disabled {
        true => tx
            .prepare_cached(
                "INSERT INTO disabled_domains (name, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(params![name, now])?,
        false => tx
            .prepare_cached("DELETE FROM disabled_domains WHERE name = ?1")?
            .execute([name])?,
    };
    Ok(changed > 0)
}

/// Lists the domains of a name in all projects.
pub(super) fn list_of_name(c: &Connection, name: &str) -> rusqlite::Result<Vec<Domain>> {
    c.prepare_cached(&format!("{SELECT_DOMAIN} WHERE d.name = ?1"))?
        .query_map([name], domain_from_row)?
        .collect()
}

/// Has every domain of a copy checked before it is served: the copy may be restored when DNS says something else.
pub(super) fn require_checks(tx: &Tx<'_>) -> Result<(), Error> {
    tx.execute(
        "UPDATE domains SET state = 'pending', check_at = 0, pending_since = NULL, failing_since = NULL
         WHERE state IN ('active', 'failing')",
        [],
    )?;
    Ok(())
}
