-- Counts of projects by the hour, of the nodes of several. A machine alone has them in counters.db.

-- Home: project. Counts of a project in an hour.
CREATE TABLE shared_project_hours (
    project_id TEXT NOT NULL,
    -- Number of the hour since the epoch.
    hour INTEGER NOT NULL,
    -- JSON, as `activity/counts.rs` writes it.
    counts TEXT NOT NULL,
    PRIMARY KEY (project_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_project_hours_by_age ON shared_project_hours (hour);

-- Home: global. One row for each flush of a node, so that a repeated one never counts twice.
CREATE TABLE shared_hour_flushes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;
