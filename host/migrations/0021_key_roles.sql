-- Keys of every role: those of admins and owners are made by operators.

-- SQLite changes no CHECK in place.
ALTER TABLE keys RENAME TO keys_before;
CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    secret_sha256 BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin', 'owner')),
    note TEXT,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO keys (key_id, workspace_id, secret_sha256, created_at, last_used_at, revoked_at, role, note, expires_at)
    SELECT key_id, workspace_id, secret_sha256, created_at, last_used_at, revoked_at, role, note, expires_at FROM keys_before;
DROP TABLE keys_before;
CREATE INDEX keys_by_workspace ON keys (workspace_id, created_at);
