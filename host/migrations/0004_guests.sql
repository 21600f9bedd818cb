-- Which guest made a page, and pages that are made again by another.

-- The renderer's digest and, after a slash, the name of the page's runtime; NULL for pages from before this was noted, and
-- for one-time shares, which have no source to make another from.
ALTER TABLE deployments ADD COLUMN made_by TEXT;

-- The one rerender that there is: the latest that was asked for.
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
