-- What the payment provider is still to be told to end, because the project that it was for is gone.

-- Home: global. One row for each subscription and each open checkout of a removed project. It stays for a while after the provider was
-- told, because a checkout may have been paid meanwhile.
CREATE TABLE payment_endings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- `subscription` or `checkout`.
    kind TEXT NOT NULL,
    -- The provider's id of it.
    object TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    -- When the provider is to be told next; NULL once it was.
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX payment_endings_due ON payment_endings (due_at) WHERE due_at IS NOT NULL;

-- Sessions of which nothing is known but that they were begun: looked for at every start.
CREATE INDEX payment_sessions_begun ON payment_sessions (number) WHERE change = 0;
