PRAGMA user_version = 4;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro')),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO workspaces VALUES('01a202a7-6178-79eb-b83d-396b7dd5eebb','before','before','free',1795340853624);
CREATE TABLE keys (
    key_id TEXT PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    secret_sha256 BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
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
, project_id TEXT NOT NULL
    DEFAULT '00000000-0000-7000-8000-000000000000', state TEXT NOT NULL DEFAULT 'active'
    CHECK (state IN ('creating', 'active', 'deleting')), updated_at INTEGER NOT NULL DEFAULT 0, active_revision_id TEXT, backend_id TEXT, made_by TEXT) STRICT;
INSERT INTO deployments VALUES('01a202a8-0c50-78a5-b8b7-79536ac6540b','room','markdown','Room',0,NULL,X'9f17f672d5bf10731b4572966d5a86fef35ca3ed0a2d94d38edf33b8c777005e',X'cf07e1f2a5ffa8a255a5ab4c66893dbfe5378408368182b087b9f3601bb035ab',5,NULL,1795340897360,NULL,'01a202a7-9826-78ef-bbf5-fb43de89aaab','active',1795340897360,'01a202a8-39ed-79fe-95ec-eef57e788013','01a202a7-98a3-7b81-af02-450466d1263e','4533ecb5f7eba864ca0ba73ff1e637a1381aebabad6b82dd8d6e62c24092a1f4/2eea51fd3f9e4417389ab7ccf52f4c35');
CREATE TABLE garbage (
    digest BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE operator_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
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
INSERT INTO projects VALUES('00000000-0000-7000-8000-000000000000',NULL,'free',NULL,NULL,'active',NULL,0,0,NULL);
INSERT INTO projects VALUES('01a202a7-9826-78ef-bbf5-fb43de89aaab','01a202a7-6178-79eb-b83d-396b7dd5eebb','Before',NULL,'before-before','active',NULL,1795340867622,1795340867622,NULL);
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
INSERT INTO revisions VALUES(1,'01a202a8-39ed-79fe-95ec-eef57e788013','01a202a8-0c50-78a5-b8b7-79536ac6540b','Room',X'9f17f672d5bf10731b4572966d5a86fef35ca3ed0a2d94d38edf33b8c777005e',NULL,NULL,'baseline','active',1795340909037,1795340909037);
CREATE TABLE releases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    deployment_id TEXT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    revision_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT,
    at INTEGER NOT NULL
) STRICT;
INSERT INTO releases VALUES(1,'01a202a8-0c50-78a5-b8b7-79536ac6540b','01a202a8-39ed-79fe-95ec-eef57e788013','baseline',NULL,1795340909037);
CREATE TABLE runtimes (
    name TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO runtimes VALUES('2eea51fd3f9e4417389ab7ccf52f4c35',X'2eea51fd3f9e4417389ab7ccf52f4c35dacc1f841a0c6d77d3fc2e7eef75a373',1795340867768);
CREATE TABLE purges (
    prefix TEXT PRIMARY KEY,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Counts the requests for this prefix, so that a newer one outlives the purge under way.
    generation INTEGER NOT NULL DEFAULT 1,
    -- Purges left after this one: an old answer may have been in flight.
    repeats INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE backends (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL UNIQUE REFERENCES projects (id),
    realtime INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
INSERT INTO backends VALUES('01a202a7-98a3-7b81-af02-450466d1263e','01a202a7-9826-78ef-bbf5-fb43de89aaab',0,1795340867747);
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
INSERT INTO ledger VALUES('01a202a7-98a3-7b81-af02-450466d1263e',1,'afdc858f74cd6853ea2bc5217ba6e47e1b98f8f7e599012db14b83bdcce7fd85','CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT NOT NULL)',NULL,1795340867747);
INSERT INTO ledger VALUES('01a202a7-98a3-7b81-af02-450466d1263e',2,'7059f151c6135887e5e222b8bad962c2e92a7382939c34f30f0543537e0668b8','ALTER TABLE guests ADD COLUMN note TEXT',NULL,1795340867758);
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
INSERT INTO actions VALUES('01a202a7-98a3-7b81-af02-450466d1263e','add',1,'INSERT INTO guests (name) VALUES (:name)','9c185a32e5a0f0587ecb1b9807cf7dfb698bcaf0b38864dee64716808f7c3fcf',NULL,1795340867762,'{"kind":"write","binds":["name"],"returns_rows":false,"start":0,"end":40}',X'24d9f7099b8e63e365179ab2768e66111b920fd46433566a93347aa96ee6aa4b');
CREATE TABLE rerender (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    requested_at INTEGER NOT NULL,
    -- What frontends are made by after it, like `made_by`; NULL until the server begins.
    made_by TEXT,
    -- Pages that were to be made again when it began.
    total INTEGER NOT NULL DEFAULT 0,
    -- The id of the last page that was looked at.
    last TEXT NOT NULL DEFAULT '',
    changed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    finished_at INTEGER
) STRICT;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('revisions',1);
INSERT INTO sqlite_sequence VALUES('releases',1);
CREATE INDEX keys_by_workspace ON keys (workspace_id, created_at);
CREATE INDEX deployments_by_expiry ON deployments (expires_at);
CREATE INDEX deployments_by_source ON deployments (source_digest);
CREATE INDEX deployments_by_artifact ON deployments (artifact_digest);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
CREATE INDEX projects_by_workspace ON projects (workspace_id);
CREATE INDEX projects_by_expiry ON projects (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX projects_deleting ON projects (id) WHERE state = 'deleting';
CREATE INDEX deployments_by_project ON deployments (project_id)
    WHERE project_id <> '00000000-0000-7000-8000-000000000000';
CREATE INDEX deployments_unfinished ON deployments (state) WHERE state <> 'active';
CREATE INDEX revisions_by_deployment ON revisions (deployment_id, number);
CREATE INDEX revisions_by_content ON revisions (deployment_id, source_digest, title);
CREATE INDEX revisions_by_source ON revisions (source_digest);
CREATE INDEX revisions_by_preview ON revisions (preview_digest) WHERE preview_digest IS NOT NULL;
CREATE UNIQUE INDEX one_active_revision ON revisions (deployment_id) WHERE state = 'active';
CREATE INDEX releases_by_deployment ON releases (deployment_id, id);
CREATE INDEX purges_by_time ON purges (due_at);
COMMIT;
