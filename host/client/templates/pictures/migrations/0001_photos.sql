-- A migration that was applied never changes: the next change is a file of its own, such as 0002_….sql.
CREATE TABLE photos (
  id INTEGER PRIMARY KEY,
  -- The file that a visitor brought. The photo goes with it.
  file TEXT NOT NULL REFERENCES svc_files (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  caption TEXT NOT NULL CHECK (length(caption) <= 200),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE INDEX photos_by_file ON photos (file);
CREATE INDEX photos_by_owner ON photos (owner);
