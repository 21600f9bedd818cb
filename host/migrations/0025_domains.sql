-- Domains that owners bring for their projects. Several projects may have one name, and the one that DNS proves serves it.
CREATE TABLE domains (
    project_id TEXT NOT NULL,
    -- In lower case and ASCII, without a dot at its end.
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'failing', 'lost')),
    -- Host that all requests are sent to; NULL: the domain answers itself.
    redirect_to TEXT,
    created_at INTEGER NOT NULL,
    -- When DNS proved it for the last time.
    verified_at INTEGER,
    -- When DNS answered for the last time.
    checked_at INTEGER,
    -- Begin of the pending time; NULL where a backup was restored and nothing was checked since.
    pending_since INTEGER,
    -- When the proof was first missing.
    failing_since INTEGER,
    -- When it is checked by itself; NULL: never.
    check_at INTEGER,
    PRIMARY KEY (project_id, name)
) STRICT;
CREATE UNIQUE INDEX domains_served ON domains (name) WHERE state IN ('active', 'failing');
CREATE INDEX domains_by_name ON domains (name);
CREATE INDEX domains_due ON domains (check_at) WHERE check_at IS NOT NULL;

-- Names that the operator has taken down, whichever project has them.
CREATE TABLE disabled_domains (
    name TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT;

-- Domain that a session began on, where alone it counts; NULL: it began on the project's own origin.
ALTER TABLE visitor_sessions ADD COLUMN host TEXT;
CREATE INDEX visitor_sessions_by_host ON visitor_sessions (host) WHERE host IS NOT NULL;
-- Sessions on a domain end when its project loses it: browsers send their cookies to whoever has the name then.
CREATE TRIGGER sessions_of_lost_domains AFTER UPDATE OF state ON domains WHEN new.state = 'lost' BEGIN
    DELETE FROM visitor_sessions
    WHERE host = old.name AND EXISTS (SELECT 1 FROM visitors v WHERE v.id = visitor_id AND v.project_id = old.project_id);
END;
CREATE TRIGGER sessions_of_removed_domains AFTER DELETE ON domains BEGIN
    DELETE FROM visitor_sessions
    WHERE host = old.name AND EXISTS (SELECT 1 FROM visitors v WHERE v.id = visitor_id AND v.project_id = old.project_id);
END;
