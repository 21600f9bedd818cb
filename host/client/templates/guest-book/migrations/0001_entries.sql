-- A migration that was applied never changes: the next change is a file of its own, such as 0002_….sql.
CREATE TABLE entries (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  message TEXT NOT NULL CHECK (length(message) BETWEEN 1 AND 500),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
INSERT INTO entries (name, message) VALUES
  ('The host', 'Welcome! Leave a few words, and everybody who has this page open sees them at once.');
