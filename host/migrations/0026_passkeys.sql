-- Passkeys of visitors, and the accounts that have them. They belong to no project: a visitor of each project may be linked to an
-- account, and one without any ends.

CREATE TABLE passkey_accounts (
    -- Random: what devices keep beside the key, and the subject of the account's visitors.
    handle TEXT PRIMARY KEY,
    -- What the visitor gave.
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE passkeys (
    credential_id BLOB PRIMARY KEY,
    account TEXT NOT NULL REFERENCES passkey_accounts (handle) ON DELETE CASCADE,
    -- In the form of COSE.
    public_key BLOB NOT NULL,
    algorithm INTEGER NOT NULL,
    counter INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_by_account ON passkeys (account);

-- Whether an account is linked to any project is asked whenever a visitor is erased.
CREATE INDEX visitors_by_passkey_account ON visitors (subject) WHERE provider = 'passkey';
