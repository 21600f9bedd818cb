-- Sites: frontends that are sets of files.

-- Number and length of a site's files; NULL for pages.
ALTER TABLE deployments ADD COLUMN site_files INTEGER;
ALTER TABLE deployments ADD COLUMN site_bytes INTEGER;
ALTER TABLE revisions ADD COLUMN site_files INTEGER;
ALTER TABLE revisions ADD COLUMN site_bytes INTEGER;
CREATE INDEX drafts_of_sites ON revisions (created_at) WHERE state = 'draft' AND site_files IS NOT NULL;

-- Counts the changes of which files an owner has, and which of them revisions name.
ALTER TABLE file_owners ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
-- Whether a revision has ended since the files were last looked through.
ALTER TABLE file_owners ADD COLUMN is_due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX file_owners_due ON file_owners (owner_id) WHERE is_due = 1;

-- Slug of the site that an edge may hold at the root of the project's origin, as it was last told.
ALTER TABLE projects ADD COLUMN edge_root TEXT;

-- Revisions of sites that were live a short time ago: their files serve tabs that were opened then.
CREATE TABLE former_revisions (
    -- Order in which they were displaced.
    number INTEGER PRIMARY KEY,
    deployment_id TEXT NOT NULL,
    revision_id TEXT NOT NULL,
    -- Until when its files are served.
    until INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX former_revisions_by_revision ON former_revisions (deployment_id, revision_id);
CREATE INDEX former_revisions_by_end ON former_revisions (until);
-- Whether the revision deletes files by name: no earlier revision's serve open tabs then.
ALTER TABLE revisions ADD COLUMN deletes_files INTEGER NOT NULL DEFAULT 0;

-- Object that lists what was live at immutable paths of a site; NULL where nothing was.
ALTER TABLE deployments ADD COLUMN immutable_digest BLOB;
CREATE INDEX deployments_by_immutables ON deployments (immutable_digest) WHERE immutable_digest IS NOT NULL;
-- That object as it will be once a draft is live, and as it was when the draft was judged by it. A draft without immutable paths has none.
ALTER TABLE revisions ADD COLUMN immutable_digest BLOB;
ALTER TABLE revisions ADD COLUMN immutable_base BLOB;
CREATE INDEX revisions_by_immutables ON revisions (immutable_digest) WHERE immutable_digest IS NOT NULL;

-- Object of a text file's encodings; NULL where none was made.
ALTER TABLE blobs ADD COLUMN encoded_digest BLOB;
CREATE INDEX blobs_by_encodings ON blobs (encoded_digest) WHERE encoded_digest IS NOT NULL;
-- Since when encodings of the file are to be made.
ALTER TABLE blobs ADD COLUMN encode_since INTEGER;
CREATE INDEX blobs_to_encode ON blobs (encode_since) WHERE encode_since IS NOT NULL;

-- Content that the operator has blocked: no file, source or page of this SHA-256 is taken or shown.
CREATE TABLE blocked (
    digest BLOB PRIMARY KEY,
    -- Why, in the operator's words.
    note TEXT,
    blocked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Path of the file below the page that a report is about.
ALTER TABLE reports ADD COLUMN path TEXT;

-- Manifest of a former revision whose files serve nobody, and which still says what was deleted by name; NULL where its files serve open tabs.
ALTER TABLE former_revisions ADD COLUMN deletions_digest BLOB;
CREATE INDEX former_revisions_by_deletions ON former_revisions (deletions_digest) WHERE deletions_digest IS NOT NULL;
-- Moment at which somebody last asked for the draft, which was there already; NULL where nobody did.
ALTER TABLE revisions ADD COLUMN kept_since INTEGER;
-- Warnings for the author of a site, as JSON; NULL where there are none.
ALTER TABLE revisions ADD COLUMN warnings TEXT;
-- Those of the first files of a site, for the revision that its history begins with.
ALTER TABLE deployments ADD COLUMN warnings TEXT;
-- Bytes of an encoding's object, which count for the installation alone.
ALTER TABLE blobs ADD COLUMN encoded_bytes INTEGER NOT NULL DEFAULT 0;
-- What the files of all owners take, with their encodings: one row.
CREATE TABLE file_totals (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO file_totals (id, bytes) SELECT 1, coalesce(sum(bytes), 0) FROM file_owners;
-- Files of a project end with it.
CREATE TRIGGER files_of_ended_projects AFTER DELETE ON projects BEGIN
    UPDATE file_owners SET is_due = 1, version = version + 1 WHERE owner_id = old.id;
END;
