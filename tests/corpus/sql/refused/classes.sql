PRAGMA table_info(users)
-- ----
PRAGMA writable_schema = ON
-- ----
pragma main.page_count
-- ----
PRAGMA "writable_schema"=1
-- ----
ATTACH 'x.db' AS y
-- ----
ATTACH DATABASE ':memory:' AS y
-- ----
DETACH y
-- ----
DETACH DATABASE main
-- ----
VACUUM
-- ----
VACUUM INTO '/tmp/x'
-- ----
VACUUM main INTO 'x'
-- ----
EXPLAIN SELECT 1
-- ----
EXPLAIN QUERY PLAN SELECT 1
-- ----
BEGIN
-- ----
BEGIN IMMEDIATE TRANSACTION
-- ----
COMMIT
-- ----
END TRANSACTION
-- ----
ROLLBACK
-- ----
ROLLBACK TO x
-- ----
SAVEPOINT x
-- ----
RELEASE x
-- ----
RELEASE SAVEPOINT x
-- ----
ANALYZE
-- ----
ANALYZE users
-- ----
REINDEX
-- ----
REINDEX posts_by_user
-- ----
DROP TABLE users
-- ----
DROP TABLE IF EXISTS users
-- ----
DROP INDEX posts_by_user
-- ----
DROP VIEW published_posts
-- ----
DROP TRIGGER x
-- ----
CREATE TABLE t (a)
-- ----
CREATE TABLE t AS SELECT 1
-- ----
CREATE TEMP TABLE t (a)
-- ----
CREATE INDEX i ON users (age)
-- ----
CREATE VIEW v AS SELECT 1
-- ----
CREATE TRIGGER t AFTER INSERT ON users BEGIN DELETE FROM posts; END
-- ----
CREATE TEMP TRIGGER t AFTER INSERT ON users BEGIN SELECT 1; END
-- ----
CREATE VIRTUAL TABLE f USING fts5(a)
-- ----
ALTER TABLE users RENAME TO people
-- ----
ALTER TABLE users ADD COLUMN x
-- ----
ALTER TABLE users DROP COLUMN age
-- ----
/* SELECT */ PRAGMA user_version
-- ----
-- SELECT
PRagMA user_version
-- ----
(SELECT 1)
-- ----
SELEC 1
-- ----
1
-- ----
'SELECT 1'
-- ----
"SELECT 1"
-- ----
)
-- ----
hello
-- ----
TABLE users
-- ----
SHOW TABLES
-- ----
GRANT ALL ON users TO x
-- ----
TRUNCATE users
-- ----
MERGE INTO users USING posts ON 1 WHEN MATCHED THEN DELETE
-- ----
CALL x()
-- ----
SET x = 1
-- ----
COPY users TO 'x'
-- ----
-- purpose: query
PRAGMA table_info(users)
-- ----
-- purpose: query
PRAGMA writable_schema = ON
-- ----
-- purpose: query
pragma main.page_count
-- ----
-- purpose: query
PRAGMA "writable_schema"=1
-- ----
-- purpose: query
ATTACH 'x.db' AS y
-- ----
-- purpose: query
ATTACH DATABASE ':memory:' AS y
-- ----
-- purpose: query
DETACH y
-- ----
-- purpose: query
DETACH DATABASE main
-- ----
-- purpose: query
VACUUM
-- ----
-- purpose: query
VACUUM INTO '/tmp/x'
-- ----
-- purpose: query
VACUUM main INTO 'x'
-- ----
-- purpose: query
EXPLAIN SELECT 1
