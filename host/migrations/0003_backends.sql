-- Backends: one SQLite database a project, the ledger of its schema, and the actions that visitors may call.

CREATE TABLE backends (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL UNIQUE REFERENCES projects (id),
    realtime INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;

-- What was done to a schema, verbatim. Only ever appended to.
CREATE TABLE ledger (
    backend_id TEXT NOT NULL REFERENCES backends (id) ON DELETE CASCADE,
    version INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    sql TEXT NOT NULL,
    note TEXT,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (backend_id, version),
    UNIQUE (backend_id, checksum)
) STRICT;

-- Every version of every action; the newest is the one that is called. Only ever appended to.
CREATE TABLE actions (
    backend_id TEXT NOT NULL REFERENCES backends (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    sql TEXT NOT NULL,
    checksum TEXT NOT NULL,
    note TEXT,
    created_at INTEGER NOT NULL,
    -- The gate's verdict as JSON, and which gate it was.
    verdict TEXT NOT NULL,
    gate BLOB NOT NULL,
    PRIMARY KEY (backend_id, name, version)
) STRICT;

-- The backend that a frontend's page was last published with, which may be gone; NULL until there was one.
ALTER TABLE deployments ADD COLUMN backend_id TEXT;
