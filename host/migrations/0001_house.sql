-- The house: who publishes, what is published, and what operators and visitors say of it.
-- Times are milliseconds since the Unix epoch; ids are UUIDs as text; digests are SHA-256.

CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro')),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    secret_sha256 BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_workspace ON keys (workspace_id, created_at);

-- Everything that answers at a slug.
CREATE TABLE deployments (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    content_type TEXT NOT NULL,
    -- Empty for a one-time share: its title is part of what burns.
    title TEXT NOT NULL,
    one_time INTEGER NOT NULL DEFAULT 0,
    -- Argon2id in PHC form.
    password_hash TEXT,
    -- NULL for a one-time share, whose content lies in a private file named by its id.
    source_digest BLOB,
    artifact_digest BLOB,
    visits INTEGER NOT NULL DEFAULT 0,
    disabled_at INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;
CREATE INDEX deployments_by_expiry ON deployments (expires_at);
CREATE INDEX deployments_by_source ON deployments (source_digest);
CREATE INDEX deployments_by_artifact ON deployments (artifact_digest);

-- Content that lost a reference and may have no other: the collector looks again after a grace period.
CREATE TABLE garbage (
    digest BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each flush of visit counts, so that a retried flush never counts twice.
CREATE TABLE visit_flushes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE reports (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL,
    reason TEXT NOT NULL,
    details TEXT,
    contact TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The first answer to each idempotency key.
CREATE TABLE idempotency (
    principal TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    body_mac BLOB NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (principal, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- What operators' commands tell the running server.
CREATE TABLE operator_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- Keys of this installation, made at first start.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
