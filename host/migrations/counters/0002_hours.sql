-- Home: node. Counts of a project in an hour, of all that its pages did.
CREATE TABLE project_hours (
    project_id TEXT NOT NULL,
    -- Number of the hour since the epoch.
    hour INTEGER NOT NULL,
    -- JSON, as `activity/counts.rs` writes it.
    counts TEXT NOT NULL,
    PRIMARY KEY (project_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_hours_by_age ON project_hours (hour);
