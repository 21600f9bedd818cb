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

-- Content that the operator has blocked: no file, source or page of this SHA-256 is taken or shown.
CREATE TABLE blocked (
    digest BLOB PRIMARY KEY,
    -- Why, in the operator's words.
    note TEXT,
    blocked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Path of the file below the page that a report is about.
ALTER TABLE reports ADD COLUMN path TEXT;
