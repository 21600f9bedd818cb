-- One-time links into the owner's console: the code of each is exchanged once for a key.
CREATE TABLE console_links (
    -- SHA-256 of the code, which is kept nowhere.
    code_sha256 BLOB PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    -- Role of the key.
    role TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin', 'owner')),
    -- Moment from which the code is refused; NULL: the end of the server that has printed the link.
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
