-- at: 1:7
-- says: too early
SELECT
-- ----
-- at: 1:14
SELECT 1 FROM
-- ----
-- at: 1:8
-- says: near
SELECT FROM users
-- ----
SELECT * FROM users WHERE
-- ----
-- at: 2:3
SELECT 1,
  FROM users
-- ----
-- at: 1:10
SELECT 1 1
-- ----
SELECT (1
-- ----
SELECT 1)
-- ----
SELECT ((1)
-- ----
SELECT 'open
-- ----
-- at: 1:8
-- says: no end
SELECT "open
-- ----
SELECT [open
-- ----
SELECT `open
-- ----
SELECT 'it's'
-- ----
SELECT 1a
-- ----
SELECT 0x
-- ----
SELECT 0xG
-- ----
SELECT 1__0
-- ----
SELECT 1_
-- ----
SELECT 1e
-- ----
SELECT x'1'
-- ----
SELECT x'GG'
-- ----
SELECT x'00
-- ----
SELECT 1 ! 2
-- ----
SELECT 1 ^ 2
-- ----
SELECT {1}
-- ----
SELECT \1
-- ----
SELECT 1
-- ----
SELECT * FROM
-- ----
SELECT * users
-- ----
SELECT * FROM users LIMIT
-- ----
SELECT * FROM users ORDER
-- ----
SELECT * FROM users ORDER BY
-- ----
SELECT * FROM users GROUP BY
-- ----
SELECT * FROM users WHERE name LIKE
-- ----
SELECT CASE WHEN 1 THEN 2
-- ----
SELECT CASE END
-- ----
SELECT CAST(1 AS
-- ----
SELECT 1 UNION
-- ----
SELECT 1 UNION ALL ALL SELECT 2
-- ----
SELECT 1 LIMIT 1 UNION SELECT 2; SELECT
-- ----
INSERT users VALUES (1)
-- ----
INSERT INTO users
-- ----
INSERT INTO users VALUES
-- ----
INSERT INTO users (name VALUES ('a')
-- ----
INSERT INTO users (name) VALUES 'a'
-- ----
INSERT INTO users (name) VALUES ('a') ON CONFLICT
-- ----
INSERT INTO users (name) VALUES ('a') ON DUPLICATE KEY UPDATE name = 'b'
-- ----
INSERT OR DIE INTO users (name) VALUES ('a')
-- ----
UPDATE users name = 1
-- ----
UPDATE users SET
-- ----
UPDATE users SET name
-- ----
UPDATE users SET name = 1,
-- ----
DELETE users
-- ----
DELETE FROM
-- ----
DELETE FROM users WHERE
-- ----
WITH a SELECT 1
-- ----
WITH a AS SELECT 1
-- ----
WITH a AS (SELECT 1)
-- ----
WITH
-- ----
VALUES
-- ----
VALUES 1
-- ----
VALUES ()
-- ----
SELECT * FROM users NATURAL JOIN posts ON 1
-- ----
SELECT * FROM users OUTER JOIN posts
-- ----
SELECT * FROM users LEFT INNER OUTER JOIN posts
-- ----
SELECT a.b.c.d FROM users
-- ----
SELECT 1::text
-- ----
SELECT name ILIKE 'x' FROM users
-- ----
SELECT TOP 1 * FROM users
-- ----
SELECT DISTINCT ON (name) name FROM users
-- ----
SELECT * FROM users FOR UPDATE
-- ----
SELECT * INTO t FROM users
-- ----
SELECT * FROM users FETCH FIRST 1 ROWS ONLY
-- ----
SELECT 1 FROM users u JOIN
-- ----
SELECT 1 WHERE x IN
-- ----
-- escapes
SELECT\v1
-- ----
-- says: no statement
/*SELECT 1*/
-- ----
SELECT 1 /*
-- ----
-- purpose: migration
-- at: 1:16
-- says: near
CREATE TABLE t select (a)
-- ----
-- purpose: schema
CREATE TABLE t
-- ----
-- purpose: schema
CREATE TABLE t ()
-- ----
-- purpose: schema
CREATE TABLE t (a
-- ----
-- purpose: schema
CREATE TABLE t (a) WITHOUT
-- ----
-- purpose: schema
CREATE TABLE t (a) FAST
-- ----
-- purpose: schema
CREATE TABLE t (a PRIMARY)
-- ----
-- purpose: schema
CREATE TABLE t (a REFERENCES)
-- ----
-- purpose: schema
CREATE
-- ----
-- purpose: schema
CREATE t (a)
-- ----
-- purpose: migration
CREATE INDEX ON users (name)
-- ----
-- purpose: migration
CREATE INDEX i ON users
-- ----
-- purpose: migration
CREATE INDEX i users (name)
-- ----
-- purpose: migration
CREATE VIEW v
-- ----
-- purpose: migration
CREATE VIEW v AS
-- ----
-- purpose: migration
CREATE VIEW v AS DELETE FROM users
-- ----
-- purpose: migration
CREATE UNIQUE TABLE t (a)
-- ----
-- purpose: migration
ALTER TABLE users
-- ----
-- purpose: migration
ALTER TABLE users ADD
-- ----
-- purpose: migration
ALTER users ADD COLUMN x
