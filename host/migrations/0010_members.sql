-- People: who they are, in which workspaces they are and with which role, and what a workspace pays for.

-- Whoever a token of the operator's issuer named. Never removed: an id means one person for good.
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- What the issuer said last; NULL where it said none, or that it is not verified.
    email TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id),
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'editor', 'viewer')),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_user ON memberships (user_id, workspace_id);

ALTER TABLE keys ADD COLUMN role TEXT NOT NULL DEFAULT 'editor'
    CHECK (role IN ('viewer', 'editor'));
ALTER TABLE keys ADD COLUMN note TEXT;
ALTER TABLE keys ADD COLUMN expires_at INTEGER;

-- Subscriptions of workspaces at the payment provider, merged from its events: what was once true of one stays, and of two
-- statuses the later counts, so that the order in which events arrive cannot matter.
CREATE TABLE subscriptions (
    -- The provider's.
    id TEXT PRIMARY KEY,
    -- NULL until an event says so: that of the checkout does.
    workspace_id TEXT,
    -- The provider's name for who pays.
    customer TEXT,
    -- Whether its checkout was completed and paid.
    started INTEGER NOT NULL DEFAULT 0,
    -- Whether the provider says that it is no more.
    deleted INTEGER NOT NULL DEFAULT 0,
    status TEXT,
    -- Whether the provider was told to end it, because its workspace is gone.
    told INTEGER NOT NULL DEFAULT 0,
    -- When the provider says that this status was reached.
    status_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_by_workspace ON subscriptions (workspace_id);

-- Workspaces that were deleted: a subscription of one is ended when it is heard of. One of a workspace that was never here is
-- another installation's, which the provider tells us of, too.
CREATE TABLE ended_workspaces (
    id TEXT PRIMARY KEY,
    ended_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
