-- Files that visitors bring. Their rows are in the databases of backends; these rows name the bytes.

-- Rules of an action for files, as JSON; NULL where there are none.
ALTER TABLE actions ADD COLUMN files TEXT;

-- Backends that have had files of visitors.
CREATE TABLE visitor_file_backends (
    backend_id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL,
    -- Whether the backend is gone, so that all of its files end.
    has_ended INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX visitor_file_backends_ended ON visitor_file_backends (backend_id) WHERE has_ended = 1;
CREATE INDEX visitor_file_backends_by_project ON visitor_file_backends (project_id);

CREATE TABLE visitor_files (
    file_id TEXT NOT NULL,
    -- Square that a smaller copy of a picture fits, in pixels; 0: the file itself.
    size INTEGER NOT NULL,
    backend_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    -- SHA-256 of the bytes as they are stored, and as they were sent.
    digest BLOB NOT NULL,
    sent_digest BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    -- List of the objects of a large file.
    list_digest BLOB,
    media_type TEXT NOT NULL,
    -- `arriving`: its row may not be committed yet. `kept`: the row is there. `ended`: it is gone, and the history may bring it back.
    state TEXT NOT NULL CHECK (state IN ('arriving', 'kept', 'ended')),
    -- When it came into its state.
    since INTEGER NOT NULL,
    PRIMARY KEY (file_id, size)
) STRICT, WITHOUT ROWID;
CREATE INDEX visitor_files_by_backend ON visitor_files (backend_id, file_id);
CREATE INDEX visitor_files_by_digest ON visitor_files (project_id, digest);
CREATE INDEX visitor_files_by_object ON visitor_files (digest);
CREATE INDEX visitor_files_by_list ON visitor_files (list_digest) WHERE list_digest IS NOT NULL;
CREATE INDEX visitor_files_by_end ON visitor_files (since) WHERE state = 'ended';
CREATE INDEX visitor_files_by_projects_end ON visitor_files (project_id, since) WHERE state = 'ended';
CREATE INDEX visitor_files_arriving ON visitor_files (since) WHERE state = 'arriving';

-- Files of a backend end with it.
CREATE TRIGGER files_of_ended_backends AFTER DELETE ON backends BEGIN
    UPDATE visitor_file_backends SET has_ended = 1 WHERE backend_id = old.id;
END;
