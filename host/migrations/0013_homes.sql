-- No reference crosses homes: what is a project's names what is the installation's, and whoever ends one ends the other.

ALTER TABLE revisions RENAME TO revisions_before;
CREATE TABLE revisions (
    -- The order in which they were made.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    deployment_id TEXT NOT NULL,
    title TEXT NOT NULL,
    source_digest BLOB NOT NULL,
    -- The page without its runtime, for the preview; NULL until somebody looks.
    preview_digest BLOB,
    message TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('draft', 'baseline', 'publish', 'promote', 'rollback')),
    state TEXT NOT NULL CHECK (state IN ('draft', 'active', 'superseded', 'rolled_back')),
    created_at INTEGER NOT NULL,
    promoted_at INTEGER,
    -- The revision that was live when a draft was made; NULL for revisions that are published without one.
    base_id TEXT
) STRICT;
INSERT INTO revisions (number, id, deployment_id, title, source_digest, preview_digest, message, kind, state, created_at,
    promoted_at, base_id)
SELECT number, id, deployment_id, title, source_digest, preview_digest, message, kind, state, created_at, promoted_at, base_id
FROM revisions_before ORDER BY number;
-- A number is never given twice.
DELETE FROM sqlite_sequence WHERE name = 'revisions';
INSERT INTO sqlite_sequence (name, seq) SELECT 'revisions', seq FROM sqlite_sequence WHERE name = 'revisions_before';
DROP TABLE revisions_before;
CREATE INDEX revisions_by_deployment ON revisions (deployment_id, number);
CREATE INDEX revisions_by_content ON revisions (deployment_id, source_digest, title);
CREATE INDEX revisions_by_source ON revisions (source_digest);
CREATE INDEX revisions_by_preview ON revisions (preview_digest) WHERE preview_digest IS NOT NULL;
CREATE UNIQUE INDEX one_active_revision ON revisions (deployment_id) WHERE state = 'active';

ALTER TABLE releases RENAME TO releases_before;
CREATE TABLE releases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    deployment_id TEXT NOT NULL,
    revision_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT,
    at INTEGER NOT NULL
) STRICT;
INSERT INTO releases (id, deployment_id, revision_id, kind, message, at)
SELECT id, deployment_id, revision_id, kind, message, at FROM releases_before ORDER BY id;
DELETE FROM sqlite_sequence WHERE name = 'releases';
INSERT INTO sqlite_sequence (name, seq) SELECT 'releases', seq FROM sqlite_sequence WHERE name = 'releases_before';
DROP TABLE releases_before;
CREATE INDEX releases_by_deployment ON releases (deployment_id, id);

ALTER TABLE ledger RENAME TO ledger_before;
CREATE TABLE ledger (
    backend_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    sql TEXT NOT NULL,
    note TEXT,
    applied_at INTEGER NOT NULL,
    PRIMARY KEY (backend_id, version),
    UNIQUE (backend_id, checksum)
) STRICT;
INSERT INTO ledger (backend_id, version, checksum, sql, note, applied_at)
SELECT backend_id, version, checksum, sql, note, applied_at FROM ledger_before ORDER BY rowid;
DROP TABLE ledger_before;

ALTER TABLE actions RENAME TO actions_before;
CREATE TABLE actions (
    backend_id TEXT NOT NULL,
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
INSERT INTO actions (backend_id, name, version, sql, checksum, note, created_at, verdict, gate)
SELECT backend_id, name, version, sql, checksum, note, created_at, verdict, gate FROM actions_before ORDER BY rowid;
DROP TABLE actions_before;
