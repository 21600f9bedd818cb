-- What is counted, in counters.db.

-- Home: node. Views of a deployment that are written down.
CREATE TABLE visits (
    deployment_id TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Home: node. One row for each flush of counts, so that a retried flush never counts twice.
CREATE TABLE visit_flushes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;
