CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL COLLATE NOCASE,
  email TEXT UNIQUE,
  age INTEGER CHECK (age >= 0),
  bio TEXT,
  settings TEXT DEFAULT '{}',
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  title TEXT NOT NULL,
  body TEXT,
  tags TEXT,
  score REAL DEFAULT 0,
  published INTEGER NOT NULL DEFAULT 0,
  published_at TEXT,
  data BLOB,
  slug TEXT GENERATED ALWAYS AS (lower(replace(title, ' ', '-'))) STORED
);
CREATE INDEX posts_by_user ON posts (user_id, id DESC);
CREATE INDEX posts_published ON posts (published_at) WHERE published = 1;
CREATE INDEX posts_lower ON posts (lower(title));
CREATE TABLE comments (
  id INTEGER PRIMARY KEY,
  post_id INTEGER NOT NULL,
  user_id INTEGER,
  parent_id INTEGER REFERENCES comments,
  body TEXT NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch()),
  FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE likes (
  user_id INTEGER NOT NULL,
  post_id INTEGER NOT NULL,
  weight REAL NOT NULL DEFAULT 1.0,
  PRIMARY KEY (user_id, post_id)
) WITHOUT ROWID;
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer TEXT NOT NULL,
  item TEXT NOT NULL,
  quantity INT NOT NULL,
  price REAL NOT NULL,
  total REAL AS (quantity * price) VIRTUAL,
  day TEXT NOT NULL
) STRICT;
CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent INTEGER, label TEXT);
CREATE TABLE kv (k TEXT PRIMARY KEY, v ANY) STRICT, WITHOUT ROWID;
CREATE TABLE "odd name" ("the key" INTEGER PRIMARY KEY, [select] TEXT, `from` TEXT, "a""b" TEXT);
CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, payload TEXT, at TEXT);
CREATE TABLE tables_with_svc_inside (svc_column TEXT, sqlite_column TEXT);
CREATE TABLE svc_payments (id TEXT PRIMARY KEY, user_id TEXT, product TEXT, status TEXT, amount INTEGER, created_at TEXT);
CREATE VIEW published_posts AS SELECT id, user_id, title, slug FROM posts WHERE published = 1;
CREATE VIEW post_counts (user_id, n) AS SELECT user_id, count(*) FROM posts GROUP BY user_id;
CREATE TABLE svc_files (id TEXT PRIMARY KEY, name TEXT, type TEXT, size INTEGER, sha256 TEXT, width INTEGER, height INTEGER, user_id TEXT, created_at TEXT) WITHOUT ROWID;
