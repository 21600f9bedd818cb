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
