-- purpose: schema
-- at: 1:1
-- says: CREATE TABLE
INSERT INTO t VALUES (1)
-- ----
-- purpose: schema
CREATE VIEW v AS SELECT 1
-- ----
-- purpose: schema
CREATE INDEX i ON t (a)
-- ----
-- purpose: schema
CREATE TABLE t (a); ALTER TABLE t ADD COLUMN b
-- ----
-- purpose: schema
-- at: 1:21
-- says: SELECT
CREATE TABLE t (a); SELECT 1
-- ----
-- purpose: migration
DROP TABLE users
-- ----
-- purpose: migration
DROP INDEX posts_by_user
-- ----
-- purpose: migration
DROP VIEW published_posts
-- ----
-- purpose: migration
DELETE FROM users
-- ----
-- purpose: migration
UPDATE users SET name = 1
-- ----
-- purpose: migration
REPLACE INTO users (name) VALUES (1)
-- ----
-- purpose: migration
INSERT OR REPLACE INTO users (name) VALUES (1)
-- ----
-- purpose: migration
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = 1
-- ----
-- purpose: migration
INSERT INTO kv VALUES (1, 2) ON CONFLICT DO UPDATE SET v = 1
-- ----
-- purpose: migration
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO NOTHING ON CONFLICT DO UPDATE SET v = 1
-- ----
-- purpose: migration
INSERT INTO kv VALUES (1, 2) RETURNING k
-- ----
-- purpose: migration
SELECT 1
-- ----
-- purpose: migration
VALUES (1)
-- ----
-- purpose: migration
WITH a AS (SELECT 1) SELECT * FROM a
-- ----
-- purpose: migration
WITH a AS (SELECT 1) DELETE FROM users
-- ----
-- purpose: migration
WITH a AS (SELECT 1) UPDATE users SET name = 1
-- ----
-- purpose: migration
WITH a AS (SELECT 1) REPLACE INTO kv SELECT 1, 2 FROM a
-- ----
-- purpose: migration
PRAGMA user_version = 2
-- ----
-- purpose: migration
ATTACH 'x' AS y
-- ----
-- purpose: migration
VACUUM
-- ----
-- purpose: migration
EXPLAIN CREATE TABLE t (a)
-- ----
-- purpose: migration
BEGIN
-- ----
-- purpose: migration
COMMIT
-- ----
-- purpose: migration
ROLLBACK
-- ----
-- purpose: migration
SAVEPOINT x
-- ----
-- purpose: migration
ANALYZE
-- ----
-- purpose: migration
REINDEX
-- ----
-- purpose: migration
CREATE TRIGGER t AFTER INSERT ON users BEGIN DELETE FROM posts; END
-- ----
-- purpose: migration
CREATE TRIGGER IF NOT EXISTS t BEFORE DELETE ON users BEGIN SELECT RAISE(ABORT, 'no'); END;
-- ----
-- purpose: migration
CREATE TEMP TRIGGER t AFTER INSERT ON users BEGIN SELECT 1; END
-- ----
-- purpose: migration
CREATE VIRTUAL TABLE f USING fts5(a)
-- ----
-- purpose: migration
CREATE VIRTUAL TABLE f USING rtree(id, a, b)
-- ----
-- purpose: migration
CREATE TEMP TABLE t (a)
-- ----
-- purpose: migration
CREATE TEMPORARY TABLE t (a)
-- ----
-- purpose: migration
CREATE TEMP VIEW v AS SELECT 1
-- ----
-- purpose: migration
CREATE TEMPORARY VIEW v AS SELECT 1
-- ----
-- purpose: migration
CREATE TABLE t AS SELECT * FROM users
-- ----
-- purpose: migration
CREATE TABLE IF NOT EXISTS t AS SELECT 1
-- ----
-- purpose: migration
CREATE TABLE t AS VALUES (1)
-- ----
-- purpose: migration
CREATE TABLE t AS WITH a AS (SELECT 1) SELECT * FROM a
-- ----
-- purpose: migration
CREATE TABLE temp.t (a)
-- ----
-- purpose: migration
ALTER TABLE users RENAME TO people
-- ----
-- purpose: migration
ALTER TABLE users RENAME COLUMN name TO title
-- ----
-- purpose: migration
ALTER TABLE users RENAME name TO title
-- ----
-- purpose: migration
ALTER TABLE users DROP COLUMN age
-- ----
-- purpose: migration
ALTER TABLE users DROP age
-- ----
-- purpose: migration
ALTER TABLE users ADD CONSTRAINT x CHECK (age > 0)
-- ----
-- purpose: migration
ALTER TABLE users DROP CONSTRAINT x
-- ----
-- purpose: migration
ALTER TABLE users ALTER COLUMN age DROP NOT NULL
-- ----
-- purpose: migration
ALTER TABLE users ALTER COLUMN age SET NOT NULL
-- ----
-- purpose: schema
CREATE TABLE t (a); DROP TABLE users
-- ----
-- purpose: schema
CREATE TABLE t (a); DROP INDEX posts_by_user
-- ----
-- purpose: schema
CREATE TABLE t (a); DROP VIEW published_posts
-- ----
-- purpose: schema
CREATE TABLE t (a); DELETE FROM users
-- ----
-- purpose: schema
CREATE TABLE t (a); UPDATE users SET name = 1
-- ----
-- purpose: schema
CREATE TABLE t (a); REPLACE INTO users (name) VALUES (1)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT OR REPLACE INTO users (name) VALUES (1)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = 1
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO kv VALUES (1, 2) ON CONFLICT DO UPDATE SET v = 1
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO NOTHING ON CONFLICT DO UPDATE SET v = 1
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO kv VALUES (1, 2) RETURNING k
-- ----
-- purpose: schema
CREATE TABLE t (a); SELECT 1
-- ----
-- purpose: schema
CREATE TABLE t (a); VALUES (1)
-- ----
-- purpose: schema
CREATE TABLE t (a); WITH a AS (SELECT 1) SELECT * FROM a
-- ----
-- purpose: schema
CREATE TABLE t (a); WITH a AS (SELECT 1) DELETE FROM users
-- ----
-- purpose: schema
CREATE TABLE t (a); WITH a AS (SELECT 1) UPDATE users SET name = 1
-- ----
-- purpose: schema
CREATE TABLE t (a); WITH a AS (SELECT 1) REPLACE INTO kv SELECT 1, 2 FROM a
-- ----
-- purpose: schema
CREATE TABLE t (a); PRAGMA user_version = 2
-- ----
-- purpose: schema
CREATE TABLE t (a); ATTACH 'x' AS y
-- ----
-- purpose: schema
CREATE TABLE t (a); VACUUM
-- ----
-- purpose: migration
-- at: 1:1
-- says: `DROP`
DROP TABLE users
-- ----
-- purpose: migration
-- at: 1:8
-- says: CREATE TEMP
CREATE TEMP TABLE t (a)
-- ----
-- purpose: migration
-- at: 1:11
-- says: INSERT OR IGNORE
INSERT OR REPLACE INTO kv VALUES (1, 2)
-- ----
-- purpose: migration
-- at: 1:49
-- says: DO NOTHING
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = 1
-- ----
-- purpose: migration
-- at: 1:16
-- says: INSERT … SELECT
CREATE TABLE t AS SELECT 1
-- ----
-- purpose: migration
-- at: 1:19
-- says: ADD
ALTER TABLE users RENAME TO people
-- ----
-- purpose: migration
-- at: 1:19
-- says: ADD
ALTER TABLE users DROP COLUMN age
-- ----
-- purpose: migration
-- at: 1:22
-- says: script
WITH a AS (SELECT 1) DELETE FROM users
-- ----
-- purpose: migration
-- at: 2:1
CREATE TABLE t (a);
DROP TABLE t
-- ----
-- says: ORDER BY
DELETE FROM users ORDER BY id LIMIT 1
-- ----
-- at: 1:19
DELETE FROM users LIMIT 1
-- ----
-- at: 1:27
UPDATE users SET name = 1 LIMIT 1
-- ----
UPDATE users SET name = 1 ORDER BY id LIMIT 1 OFFSET 2
-- ----
UPDATE users SET name = 1 RETURNING id LIMIT 1
-- ----
-- purpose: migration
-- at: 1:8
-- says: batch
CREATE TRIGGER t AFTER INSERT ON users BEGIN DELETE FROM posts; END
-- ----
-- purpose: migration
-- says: batch
CREATE TEMP TRIGGER t AFTER INSERT ON users BEGIN SELECT 1; END
-- ----
-- purpose: migration
-- at: 1:8
-- says: full-text
CREATE VIRTUAL TABLE f USING fts5(a)
-- ----
-- purpose: migration
-- says: INTEGER PRIMARY KEY
CREATE SEQUENCE s
-- ----
-- purpose: migration
-- says: CREATE VIEW
CREATE MATERIALIZED VIEW v AS SELECT 1
