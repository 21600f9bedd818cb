-- An app's own tools, and the audit.

-- Whether the actions that need no identity are tools for the agents of visitors.
ALTER TABLE backends ADD COLUMN agents INTEGER NOT NULL DEFAULT 0;

-- Who changed what, and when: never what it holds. Written in the transaction of the change. No foreign key: an entry
-- outlives what it is about. Numbers count within a workspace, so that they tell nothing of others.
CREATE TABLE audit (
    -- Empty where what was changed is of no workspace.
    workspace_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    -- A user, a key, or `operator`.
    principal TEXT NOT NULL,
    -- `<domain>.<verb>`
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    request_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_age ON audit (at);
