-- Shares of caps, labels at rest, and what the audit keeps.

-- Who holds a quick share, for counting alone: a keyed hash of a client's network, or of an owner. NULL for frontends, whose
-- project says whose they are, and for shares from before.
ALTER TABLE deployments ADD COLUMN holder BLOB;
-- Whether the holder had a credential.
ALTER TABLE deployments ADD COLUMN is_owners INTEGER NOT NULL DEFAULT 0;
-- Bytes of the source and of the page in all of its encodings; 0 for what was published before.
ALTER TABLE deployments ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
-- Everything that the caps ask of shares, so that counting reads the index alone.
CREATE INDEX shares_by_holder ON deployments (expires_at, holder, is_owners, bytes)
    WHERE project_id = '00000000-0000-7000-8000-000000000000';

-- Bytes of the source, and of the preview once there is one; 0 for revisions from before.
ALTER TABLE revisions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX revisions_by_bytes ON revisions (deployment_id, bytes);

-- The user who made the workspace; NULL for those that the operator made. Free workspaces of one founder count as one.
ALTER TABLE workspaces ADD COLUMN founder_id TEXT;
-- The audit forgets after 90 days; the founder's membership is as old as the workspace.
UPDATE workspaces SET founder_id = coalesce(
    (SELECT a.principal FROM audit a
        WHERE a.workspace_id = workspaces.id AND a.action = 'workspace.create' AND a.principal GLOB 'usr_*' LIMIT 1),
    (SELECT m.user_id FROM memberships m
        WHERE m.workspace_id = workspaces.id AND m.created_at = workspaces.created_at LIMIT 1));
CREATE INDEX workspaces_by_founder ON workspaces (founder_id) WHERE founder_id IS NOT NULL;

-- Whether the project ever had a visitor who signed in.
ALTER TABLE projects ADD COLUMN had_visitors INTEGER NOT NULL DEFAULT 0;
UPDATE projects SET had_visitors = 1 WHERE id IN (SELECT project_id FROM visitors);

-- Host labels whose project has ended, and until when they rest.
CREATE TABLE resting_labels (
    host_label TEXT PRIMARY KEY,
    -- Whose it was: only that workspace may have it again before.
    workspace_id TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    -- NULL where it rests for good.
    until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX resting_labels_by_workspace ON resting_labels (workspace_id, ended_at);
CREATE INDEX resting_labels_by_end ON resting_labels (until) WHERE until IS NOT NULL;

-- What is kept of the audit is bounded by principal and by kind: what editors do by the thousand displaces nothing else.
ALTER TABLE audit ADD COLUMN is_lasting INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET is_lasting = 1 WHERE action GLOB 'workspace.*' OR action GLOB 'member.*' OR action GLOB 'key.*'
    OR principal = 'operator';
CREATE INDEX audit_by_principal ON audit (workspace_id, is_lasting, principal, number);
