-- purpose: migration
CREATE TABLE new_table (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id));
-- ----
-- purpose: migration
CREATE INDEX users_by_age ON users (age);
-- ----
-- purpose: migration
CREATE UNIQUE INDEX kv_lower ON kv (lower(k)) WHERE v IS NOT NULL
-- ----
-- purpose: migration
CREATE VIEW adults AS SELECT * FROM users WHERE age >= 18
-- ----
-- purpose: migration
CREATE VIEW payers AS SELECT u.id, p.amount FROM users u JOIN svc_payments p ON p.user_id = u.id
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN nickname TEXT
-- ----
-- purpose: migration
ALTER TABLE users ADD nickname TEXT NOT NULL DEFAULT ''
-- ----
-- purpose: migration
ALTER TABLE main.users ADD COLUMN score REAL DEFAULT 0 CHECK (score >= 0)
-- ----
-- purpose: migration
ALTER TABLE "users" ADD COLUMN "the score" INTEGER DEFAULT (1 + 1)
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN boss INTEGER REFERENCES users (id) ON DELETE SET NULL
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN initial TEXT GENERATED ALWAYS AS (substr(name, 1, 1)) VIRTUAL
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN initial TEXT AS (substr(name, 1, 1))
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN nick TEXT COLLATE NOCASE CONSTRAINT short CHECK (length(nick) < 20)
-- ----
-- purpose: migration
ALTER TABLE posts ADD COLUMN 'quoted' TEXT
-- ----
-- purpose: migration
ALTER TABLE posts ADD COLUMN svc_note TEXT
-- ----
-- purpose: migration
INSERT INTO users (name) VALUES ('first'), ('second')
-- ----
-- purpose: migration
INSERT INTO users (name) SELECT 'imported ' || label FROM nodes
-- ----
-- purpose: migration
INSERT INTO events (kind, at) SELECT status, created_at FROM svc_payments
-- ----
-- purpose: migration
INSERT OR IGNORE INTO kv VALUES ('a', 1)
-- ----
-- purpose: migration
INSERT OR FAIL INTO kv VALUES ('a', 1)
-- ----
-- purpose: migration
INSERT INTO kv VALUES ('a', 1) ON CONFLICT (k) DO NOTHING
-- ----
-- purpose: migration
WITH x(n) AS (VALUES ('a'), ('b')) INSERT INTO users (name) SELECT n FROM x
-- ----
-- purpose: migration
WITH x AS (SELECT 1 AS i), y AS (SELECT i + 1 AS i FROM x) INSERT INTO nodes (id) SELECT i FROM y
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN a INT; ALTER TABLE users ADD COLUMN b INT; CREATE INDEX users_ab ON users (a, b); INSERT INTO kv VALUES ('version', 2);
-- ----
-- purpose: migration
CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY)
-- ----
-- purpose: migration
CREATE INDEX IF NOT EXISTS posts_by_user ON posts (id)
-- ----
-- purpose: migration
CREATE VIEW v AS SELECT json_group_array(value) AS all_values FROM json_each('[1]')
-- ----
-- purpose: migration
CREATE TABLE replaced (old TEXT, new TEXT, "drop" INT, pragma INT, "vacuum" INT)
