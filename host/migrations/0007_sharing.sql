-- Shares that their publishers delete or owners claim, and the page that a project's origin leads to.

-- SHA-256 of the token that deletes or moves a share; NULL for frontends, and for shares from before there were tokens.
ALTER TABLE deployments ADD COLUMN delete_sha256 BLOB;

-- Tokens of shares that are gone, so that deleting one again is answered as the first time was.
CREATE TABLE ended_shares (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    delete_sha256 BLOB NOT NULL,
    ended_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ended_shares_by_age ON ended_shares (ended_at);

-- The slug of the frontend that the project's origin leads to; NULL for its oldest.
ALTER TABLE projects ADD COLUMN home TEXT;

-- The id of what an answer is about, because the answer itself is sealed; NULL for answers from before.
ALTER TABLE idempotency ADD COLUMN made TEXT;
