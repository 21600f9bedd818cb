-- Values of binds that a call may leave out, as a JSON object in the order of the statement's binds; NULL: none, as of all earlier
-- versions.
ALTER TABLE actions ADD COLUMN defaults TEXT;

-- An action ends with all its versions. The number of the last one is kept, so that a name that comes again goes on counting: no
-- number ever means two texts.
CREATE TABLE ended_actions (
    backend_id TEXT NOT NULL REFERENCES backends (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (backend_id, name)
) STRICT, WITHOUT ROWID;
