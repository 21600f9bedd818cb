-- An app's own tools, and the audit.

-- Whether the actions that need no identity are tools for the agents of visitors.
ALTER TABLE backends ADD COLUMN agents INTEGER NOT NULL DEFAULT 0;

-- Who changed what, and when: never what it holds. Written in the transaction of the change. No foreign key: an entry
-- outlives what it is about.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- NULL where what was changed is of no workspace.
    workspace_id TEXT,
    at INTEGER NOT NULL,
    -- A user, a key, or `operator`.
    principal TEXT NOT NULL,
    -- `<domain>.<verb>`
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    request_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_workspace ON audit (workspace_id, number);
CREATE INDEX audit_by_age ON audit (at);
