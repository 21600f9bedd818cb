//! Queries of the counts of projects: in the file of counters, and those of several machines in the control database.

use rusqlite::{Connection, OptionalExtension, params};

use super::counts::{HourCounts, RangeCounts};
use svc_base::clock::Timestamp;
use svc_base::ids::ProjectId;

/// Sums of a project in an hour, on their way to where they are kept.
pub(super) type HourOfProject = (ProjectId, i64, HourCounts);

/// Hours from one up to another.
pub(super) type HourRange = (i64, i64);

/// Statements about one of the two tables.
struct HourTable {
    find: &'static str,
    put: &'static str,
    list: &'static str,
    forget: &'static str,
    expire: &'static str,
}

/// Table in the file of counters.
const OWN: HourTable = HourTable {
    find: "SELECT counts FROM project_hours WHERE project_id = ?1 AND hour = ?2",
    put: "INSERT OR REPLACE INTO project_hours (project_id, hour, counts) VALUES (?1, ?2, ?3)",
    list: "SELECT hour, counts FROM project_hours WHERE project_id = ?1 AND hour >= ?2 AND hour < ?3",
    forget: "DELETE FROM project_hours WHERE project_id = ?1",
    expire: "DELETE FROM project_hours WHERE hour < ?1",
};

/// Table in the control database.
const SHARED: HourTable = HourTable {
    find: "SELECT counts FROM shared_project_hours WHERE project_id = ?1 AND hour = ?2",
    put: "INSERT OR REPLACE INTO shared_project_hours (project_id, hour, counts) VALUES (?1, ?2, ?3)",
    list: "SELECT hour, counts FROM shared_project_hours WHERE project_id = ?1 AND hour >= ?2 AND hour < ?3",
    forget: "DELETE FROM shared_project_hours WHERE project_id = ?1",
    expire: "DELETE FROM shared_project_hours WHERE hour < ?1",
};

/// Place of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HourPlace {
    /// The file of counters.
    Own,
    /// The control database, for several machines.
    Shared,
}

impl HourPlace {
    fn table(self) -> &'static HourTable {
        match self {
            Self::Own => &OWN,
            Self::Shared => &SHARED,
        }
    }

    /// Adds sums.
    pub(super) fn add(self, c: &Connection, hours: &[HourOfProject]) -> rusqlite::Result<()> {
        let table = self.table();
        for (project, hour, counts) in hours {
            let before: Option<String> = c
                .prepare_cached(table.find)?
                .query_row(params![project, hour], |row| row.get(0))
                .optional()?;
            let mut sum = before.as_deref().map(parse).unwrap_or_default();
            sum.merge(counts);
            let sum = serde_json::to_string(&sum)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            c.prepare_cached(table.put)?
                .execute(params![project, hour, sum])?;
        }
        Ok(())
    }

    /// Sums up the hours of a project from one up to another, in points of `step` hours. One hour at a time is in memory.
    pub(super) fn sums(
        self,
        c: &Connection,
        project: &ProjectId,
        ((from, to), step): (HourRange, i64),
    ) -> rusqlite::Result<RangeCounts> {
        let mut sums = RangeCounts::default();
        let mut statement = c.prepare_cached(self.table().list)?;
        let mut rows = statement.query(params![project, from, to])?;
        while let Some(row) = rows.next()? {
            let (hour, counts): (i64, String) = (row.get(0)?, row.get(1)?);
            sums.add(hour.div_euclid(step), &parse(&counts));
        }
        Ok(sums)
    }

    /// Deletes the counts of a project.
    pub(super) fn forget(self, c: &Connection, project: &ProjectId) -> rusqlite::Result<()> {
        c.prepare_cached(self.table().forget)?.execute([project])?;
        Ok(())
    }

    /// Deletes the counts of all hours before one.
    pub(super) fn expire(self, c: &Connection, before: i64) -> rusqlite::Result<()> {
        c.prepare_cached(self.table().expire)?.execute([before])?;
        Ok(())
    }
}

/// Returns the first hours in the file of counters, in an order that stays.
pub(super) fn first_own(c: &Connection, most: u32) -> rusqlite::Result<Vec<HourOfProject>> {
    let mut statement = c.prepare_cached(
        "SELECT project_id, hour, counts FROM project_hours ORDER BY project_id, hour LIMIT ?1",
    )?;
    let hours = statement.query_map([most], |row| {
        let counts: String = row.get(2)?;
        Ok((row.get(0)?, row.get(1)?, parse(&counts)))
    })?;
    hours.collect()
}

/// Deletes hours in the file of counters.
pub(super) fn remove_own(c: &Connection, hours: &[HourOfProject]) -> rusqlite::Result<()> {
    let mut statement =
        c.prepare_cached("DELETE FROM project_hours WHERE project_id = ?1 AND hour = ?2")?;
    for (project, hour, _) in hours {
        statement.execute(params![project, hour])?;
    }
    Ok(())
}

/// Reads stored sums. Those of a later program that this one cannot read count as none.
fn parse(counts: &str) -> HourCounts {
    serde_json::from_str(counts).unwrap_or_default()
}

/// Notes the flush of a node; returns whether it is new.
pub(super) fn is_new_flush(c: &Connection, id: i64, at: Timestamp) -> rusqlite::Result<bool> {
    let noted = c
        .prepare_cached("INSERT OR IGNORE INTO shared_hour_flushes (id, at) VALUES (?1, ?2)")?
        .execute(params![id, at])?;
    Ok(noted > 0)
}

/// Forgets a flush.
pub(super) fn forget_flush(c: &Connection, id: i64) -> rusqlite::Result<()> {
    c.prepare_cached("DELETE FROM shared_hour_flushes WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

/// Forgets flushes that nobody repeats any more.
pub(super) fn forget_flushes(c: &Connection, before: Timestamp) -> rusqlite::Result<()> {
    c.prepare_cached("DELETE FROM shared_hour_flushes WHERE at < ?1")?
        .execute([before])?;
    Ok(())
}

/// Whether several machines have counts of an hour before one.
pub(super) fn has_old_hours(c: &Connection, before: i64) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM shared_project_hours WHERE hour < ?1)")?
        .query_row([before], |row| row.get(0))
}

/// Whether a project is there.
pub(super) fn has_project(c: &Connection, project: &ProjectId) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM projects WHERE id = ?1)")?
        .query_row([project], |row| row.get(0))
}
