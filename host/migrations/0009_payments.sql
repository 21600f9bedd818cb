-- Payments: what projects sell, who went to pay, and what the provider says came of it.

-- Home: project. Prices with one product's name share it.
CREATE TABLE payment_products (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (project_id, name)
) STRICT;

-- Home: project. A price never changes but for being taken off the catalog.
CREATE TABLE payment_prices (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    product_id TEXT NOT NULL,
    label TEXT NOT NULL,
    amount INTEGER NOT NULL,
    currency TEXT NOT NULL,
    recurring INTEGER NOT NULL,
    active INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX payment_prices_by_project ON payment_prices (project_id, number);

-- Home: project. What a visitor went to pay, with the price as it was then; status and e-mail are what the ledger of events says.
CREATE TABLE payment_sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    price_id TEXT NOT NULL,
    price_label TEXT NOT NULL,
    amount INTEGER NOT NULL,
    currency TEXT NOT NULL,
    recurring INTEGER NOT NULL,
    -- Where the visitor comes back to.
    return_to TEXT NOT NULL,
    -- The signed-in visitor, if there was one.
    user_id TEXT,
    -- SHA-256 of the checkout cookie's value.
    cookie_sha256 BLOB NOT NULL,
    -- The provider's hosted checkout: NULL until it has answered.
    provider_id TEXT UNIQUE,
    provider_url TEXT,
    -- How many of the provider's answers for this session were failures: each needs another key.
    attempt INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    -- The address that the provider collected, and the same as it is compared.
    email TEXT,
    email_key TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- The project's count of changes at this row's last, which the mirror follows; 0 until the provider has made a checkout.
    change INTEGER NOT NULL
) STRICT;
CREATE INDEX payment_sessions_by_project ON payment_sessions (project_id, number);
CREATE INDEX payment_sessions_by_change ON payment_sessions (project_id, change);
CREATE INDEX payment_sessions_by_cookie ON payment_sessions (deployment_id, cookie_sha256, number);
CREATE INDEX payment_sessions_by_user ON payment_sessions (project_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX payment_sessions_by_email ON payment_sessions (project_id, email_key) WHERE email_key IS NOT NULL;

-- Home: project. How far the table svc_payments of the project's backend follows: one row for a project with sessions.
CREATE TABLE payment_mirrors (
    project_id TEXT PRIMARY KEY,
    -- How often sessions of the project have changed.
    changes INTEGER NOT NULL,
    -- The backend that was followed up to the change `position`; another one begins anew.
    backend_id TEXT,
    position INTEGER NOT NULL DEFAULT 0,
    -- How often the table was to be made anew, and which of these times it was.
    asked INTEGER NOT NULL DEFAULT 0,
    made INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Home: global. Verified events of the payment provider, once each: the truth that everything else follows from. An event may come
-- before anybody knows whose it is.
CREATE TABLE payment_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    happened_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    -- What it states, as JSON.
    fact TEXT NOT NULL,
    -- Whether something of ours was found for it.
    claimed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX payment_events_unclaimed ON payment_events (received_at) WHERE claimed = 0;

-- Home: global. The names by which events find each other, and what they are about.
CREATE TABLE payment_references (
    reference TEXT NOT NULL,
    event INTEGER NOT NULL,
    PRIMARY KEY (reference, event)
) STRICT, WITHOUT ROWID;
