-- Visitors who have signed in, and their sessions. Both are the project's: no row of another home refers to them, nor they to one.

CREATE TABLE visitors (
    -- The order in which they came.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- `usr_…`
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    -- Who they are to whom: nothing else tells visitors apart.
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- What was said of them at their last sign-in, and by which provider.
    provider TEXT NOT NULL,
    email TEXT,
    name TEXT,
    picture TEXT,
    locale TEXT,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    UNIQUE (project_id, issuer, subject)
) STRICT;
CREATE INDEX visitors_by_project ON visitors (project_id, number);

CREATE TABLE visitor_sessions (
    token_sha256 BLOB PRIMARY KEY,
    visitor_id TEXT NOT NULL REFERENCES visitors (id) ON DELETE CASCADE,
    -- The frontend that it is for.
    deployment_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX visitor_sessions_by_visitor ON visitor_sessions (visitor_id);
CREATE INDEX visitor_sessions_by_deployment ON visitor_sessions (deployment_id);
CREATE INDEX visitor_sessions_by_expiry ON visitor_sessions (expires_at);
