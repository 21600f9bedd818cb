-- Projects, their frontends' revisions and releases, and what is left to purge from the edge.

CREATE TABLE projects (
    id TEXT PRIMARY KEY,
    -- NULL for the free project, which is nobody's.
    workspace_id TEXT REFERENCES workspaces (id),
    name TEXT NOT NULL,
    description TEXT,
    host_label TEXT UNIQUE,
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'deleting')),
    -- A JSON array of provider names, or NULL for all.
    allowed_providers TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;
CREATE INDEX projects_by_workspace ON projects (workspace_id);
CREATE INDEX projects_by_expiry ON projects (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX projects_deleting ON projects (id) WHERE state = 'deleting';

-- Every quick share belongs to it.
INSERT INTO projects (id, name, created_at, updated_at)
VALUES ('00000000-0000-7000-8000-000000000000', 'free', 0, 0);

ALTER TABLE deployments ADD COLUMN project_id TEXT NOT NULL
    DEFAULT '00000000-0000-7000-8000-000000000000';
ALTER TABLE deployments ADD COLUMN state TEXT NOT NULL DEFAULT 'active'
    CHECK (state IN ('creating', 'active', 'deleting'));
ALTER TABLE deployments ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
-- The release pointer; NULL until the frontend is in the revision workflow.
ALTER TABLE deployments ADD COLUMN active_revision_id TEXT;
CREATE INDEX deployments_by_project ON deployments (project_id)
    WHERE project_id <> '00000000-0000-7000-8000-000000000000';
CREATE INDEX deployments_unfinished ON deployments (state) WHERE state <> 'active';

-- A frontend's history. Title, source and id never change.
CREATE TABLE revisions (
    -- The order in which they were made.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    deployment_id TEXT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    source_digest BLOB NOT NULL,
    -- The page without its runtime, for the preview; NULL until somebody looks.
    preview_digest BLOB,
    message TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('draft', 'baseline', 'publish', 'promote', 'rollback')),
    state TEXT NOT NULL CHECK (state IN ('draft', 'active', 'superseded', 'rolled_back')),
    created_at INTEGER NOT NULL,
    promoted_at INTEGER
) STRICT;
CREATE INDEX revisions_by_deployment ON revisions (deployment_id, number);
CREATE INDEX revisions_by_content ON revisions (deployment_id, source_digest, title);
CREATE INDEX revisions_by_source ON revisions (source_digest);
CREATE INDEX revisions_by_preview ON revisions (preview_digest) WHERE preview_digest IS NOT NULL;
CREATE UNIQUE INDEX one_active_revision ON revisions (deployment_id) WHERE state = 'active';

-- What became live, when, and how.
CREATE TABLE releases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    deployment_id TEXT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    revision_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX releases_by_deployment ON releases (deployment_id, id);

-- Runtimes that a stored page or a cache may name: their content stays.
CREATE TABLE runtimes (
    name TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- URL prefixes that the edge has yet to forget.
CREATE TABLE purges (
    prefix TEXT PRIMARY KEY,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Counts the requests for this prefix, so that a newer one outlives the purge under way.
    generation INTEGER NOT NULL DEFAULT 1,
    -- Purges left after this one: an old answer may have been in flight.
    repeats INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX purges_by_time ON purges (due_at);
