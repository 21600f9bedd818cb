-- at: 1:15
-- says: internal
SELECT * FROM svc_secrets
-- ----
-- at: 1:15
SELECT * FROM SVC_Secrets
-- ----
-- at: 1:15
SELECT * FROM "svc_secrets"
-- ----
-- at: 1:15
SELECT * FROM [SvC_secrets]
-- ----
-- at: 1:15
SELECT * FROM `svc_secrets`
-- ----
-- at: 1:15
SELECT * FROM 'svc_secrets'
-- ----
-- at: 1:20
SELECT * FROM main.svc_secrets
-- ----
SELECT * FROM main."SVC_"
-- ----
-- at: 2:17
SELECT svc_x AS svc_x, 'svc_x'
FROM users JOIN svc_x ON 1
-- ----
SELECT * FROM users, svc_x
-- ----
SELECT * FROM (svc_x)
-- ----
SELECT * FROM (users, (svc_x))
-- ----
SELECT * FROM users WHERE id IN svc_x
-- ----
SELECT * FROM users WHERE id IN (SELECT id FROM svc_x)
-- ----
SELECT * FROM users WHERE EXISTS (SELECT 1 FROM svc_x)
-- ----
SELECT (SELECT 1 FROM svc_x)
-- ----
SELECT CASE WHEN (SELECT 1 FROM svc_x) THEN 1 END
-- ----
SELECT * FROM users ORDER BY (SELECT 1 FROM svc_x)
-- ----
SELECT * FROM users GROUP BY (SELECT 1 FROM svc_x)
-- ----
SELECT * FROM users GROUP BY 1 HAVING (SELECT 1 FROM svc_x)
-- ----
SELECT * FROM users LIMIT (SELECT 1 FROM svc_x)
-- ----
SELECT * FROM users LIMIT 1 OFFSET (SELECT 1 FROM svc_x)
-- ----
SELECT * FROM users JOIN posts ON (SELECT 1 FROM svc_x)
-- ----
SELECT sum((SELECT 1 FROM svc_x)) FROM users
-- ----
SELECT sum(1) FILTER (WHERE (SELECT 1 FROM svc_x)) FROM users
-- ----
SELECT sum(1) OVER (ORDER BY (SELECT 1 FROM svc_x)) FROM users
-- ----
SELECT sum(1) OVER (PARTITION BY (SELECT 1 FROM svc_x)) FROM users
-- ----
SELECT sum(1) OVER (ORDER BY 1 ROWS (SELECT 1 FROM svc_x) PRECEDING) FROM users
-- ----
SELECT sum(1) OVER w FROM users WINDOW w AS (PARTITION BY (SELECT 1 FROM svc_x))
-- ----
SELECT group_concat(name, ',' ORDER BY (SELECT 1 FROM svc_x)) FROM users
-- ----
SELECT CAST((SELECT 1 FROM svc_x) AS TEXT)
-- ----
SELECT (SELECT 1 FROM svc_x) COLLATE NOCASE
-- ----
SELECT 1 BETWEEN (SELECT 1 FROM svc_x) AND 2
-- ----
SELECT 1 BETWEEN 0 AND (SELECT 1 FROM svc_x)
-- ----
SELECT 'a' LIKE 'b' ESCAPE (SELECT 1 FROM svc_x)
-- ----
SELECT (SELECT 1 FROM svc_x) ISNULL
-- ----
SELECT (1, (SELECT 1 FROM svc_x)) = (1, 2)
-- ----
SELECT '{}' -> (SELECT 1 FROM svc_x)
-- ----
SELECT - (SELECT 1 FROM svc_x)
-- ----
SELECT 1 IN (1, (SELECT 1 FROM svc_x))
-- ----
SELECT 1 UNION SELECT 2 FROM svc_x
-- ----
VALUES ((SELECT 1 FROM svc_x))
-- ----
VALUES (1), ((SELECT 1 FROM svc_x))
-- ----
SELECT * FROM json_each((SELECT 1 FROM svc_x))
-- ----
WITH a AS (SELECT * FROM svc_x) SELECT 1
-- ----
-- at: 1:6
-- says: reserved
WITH svc_x AS (SELECT 1) SELECT 1
-- ----
WITH svc_payments AS (SELECT 1) SELECT * FROM svc_payments
-- ----
WITH a AS (SELECT 1), "SVC_b" AS (SELECT 2) SELECT 1
-- ----
WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master
-- ----
INSERT INTO svc_x VALUES (1)
-- ----
INSERT INTO main.svc_x DEFAULT VALUES
-- ----
INSERT INTO users (name) SELECT x FROM svc_x
-- ----
INSERT INTO users (name) VALUES ((SELECT 1 FROM svc_x))
-- ----
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = (SELECT 1 FROM svc_x)
-- ----
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = 1 WHERE (SELECT 1 FROM svc_x)
-- ----
INSERT INTO kv VALUES (1, 2) ON CONFLICT (k) WHERE (SELECT 1 FROM svc_x) DO NOTHING
-- ----
INSERT INTO users (name) VALUES (1) RETURNING (SELECT 1 FROM svc_x)
-- ----
UPDATE svc_x SET a = 1
-- ----
UPDATE users SET name = (SELECT 1 FROM svc_x)
-- ----
UPDATE users SET name = 1 FROM svc_x
-- ----
UPDATE users SET name = 1 WHERE id IN svc_x
-- ----
UPDATE users SET name = 1 RETURNING (SELECT 1 FROM svc_x)
-- ----
DELETE FROM svc_x
-- ----
DELETE FROM users WHERE id IN (SELECT 1 FROM svc_x)
-- ----
DELETE FROM users RETURNING (SELECT 1 FROM svc_x)
-- ----
WITH a AS (SELECT * FROM svc_x) DELETE FROM users
-- ----
SELECT * FROM posts INDEXED BY svc_index
-- ----
UPDATE posts INDEXED BY svc_index SET score = 1
-- ----
DELETE FROM posts INDEXED BY svc_index
-- ----
-- says: internal
-- escapes
SELECT * FROM \uFEFFsvc_x
-- ----
SELECT * FROM/**/svc_x
-- ----
SELECT * FROM -- a
svc_x
-- ----
-- at: 1:13
-- says: can be read
INSERT INTO svc_payments (id) VALUES (1)
-- ----
UPDATE svc_payments SET amount = 0
-- ----
UPDATE svc_payments SET amount = 0 FROM users
-- ----
DELETE FROM svc_payments
-- ----
REPLACE INTO "SVC_PAYMENTS" (id) VALUES (1)
-- ----
DELETE FROM main.[svc_payments] WHERE 1
-- ----
WITH a AS (SELECT * FROM svc_payments) UPDATE svc_payments SET amount = 0
-- ----
-- purpose: migration
INSERT INTO svc_payments (id) VALUES ('x')
-- ----
-- purpose: migration
ALTER TABLE svc_payments ADD COLUMN x
-- ----
-- purpose: migration
CREATE INDEX i ON svc_payments (user_id)
-- ----
-- purpose: migration
CREATE TABLE t (p TEXT REFERENCES svc_payments (id))
-- ----
-- purpose: migration
CREATE TABLE t (p TEXT, FOREIGN KEY (p) REFERENCES svc_payments)
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN p REFERENCES svc_payments
-- ----
-- purpose: schema
CREATE TABLE svc_payments (id)
-- ----
-- purpose: schema
CREATE TABLE IF NOT EXISTS svc_payments (id)
-- ----
-- purpose: schema
-- at: 1:14
-- says: reserved
CREATE TABLE svc_x (a)
-- ----
-- purpose: schema
CREATE TABLE "SVC_x" (a)
-- ----
-- purpose: schema
CREATE TABLE [svc_x] (a)
-- ----
-- purpose: schema
CREATE TABLE 'svc_x' (a)
-- ----
-- purpose: schema
CREATE TABLE main.`svc_x` (a)
-- ----
-- purpose: schema
CREATE TABLE t (a REFERENCES svc_x)
-- ----
-- purpose: schema
CREATE TABLE t (a, FOREIGN KEY (a) REFERENCES svc_x (a))
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX svc_i ON t (a)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON svc_x (a)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW svc_v AS SELECT 1
-- ----
-- purpose: schema
-- at: 1:54
CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM   svc_x
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (a IN (SELECT 1 FROM svc_x)))
-- ----
-- purpose: schema
CREATE TABLE t (a DEFAULT ((SELECT 1 FROM svc_x)))
-- ----
-- purpose: schema
CREATE TABLE t (a AS ((SELECT 1 FROM svc_x)))
-- ----
-- purpose: schema
CREATE TABLE t (a, CHECK ((SELECT 1 FROM svc_x)))
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON t ((SELECT 1 FROM svc_x))
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON t (a) WHERE (SELECT 1 FROM svc_x)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO svc_x VALUES (1)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t SELECT * FROM svc_x
-- ----
-- purpose: migration
ALTER TABLE svc_x ADD COLUMN a
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN a CHECK ((SELECT 1 FROM svc_x))
