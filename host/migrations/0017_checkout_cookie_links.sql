-- A fresh checkout cookie takes the place of another when a browser first sends it. An answer that never arrives, or that another one
-- overtakes, loses no purchase then.

-- Home: project. Checkout cookies that were given to signed-in visitors and that no browser has sent yet.
CREATE TABLE payment_cookie_links (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- SHA-256 of the fresh cookie's value.
    fresh_sha256 BLOB NOT NULL UNIQUE,
    project_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    -- The visitor: only their purchases, and those without a sign-in, move.
    user_id TEXT NOT NULL,
    -- SHA-256 of the cookie that the browser sent, whose purchases move to the fresh one; NULL if it sent none that counts.
    former_sha256 BLOB,
    -- The session of an earlier click that this click led to; NULL if the click began a session, which has the fresh cookie from its start.
    session_id TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX payment_cookie_links_by_former ON payment_cookie_links (deployment_id, former_sha256, user_id, number)
    WHERE former_sha256 IS NOT NULL;
CREATE INDEX payment_cookie_links_by_project ON payment_cookie_links (project_id);
CREATE INDEX payment_cookie_links_by_age ON payment_cookie_links (created_at);
CREATE INDEX payment_cookie_links_by_session ON payment_cookie_links (session_id, number) WHERE session_id IS NOT NULL;

-- A click looks for an open session of the same purchase, a minute old at most, among all that the frontend ever had.
CREATE INDEX payment_sessions_recent ON payment_sessions (deployment_id, price_id, created_at) WHERE status = 'open';
-- A page asks for what a cookie has paid, among all that was begun with it.
CREATE INDEX payment_sessions_paid ON payment_sessions (deployment_id, cookie_sha256, number) WHERE status = 'paid';
