-- purpose: query
SELECT count(*) FROM users WHERE name LIKE :pattern
-- ----
-- purpose: query
SELECT * FROM svc_payments ORDER BY created_at DESC LIMIT 50
-- ----
-- purpose: query
UPDATE users SET age = :age WHERE id = :id
-- ----
-- purpose: query
INSERT INTO kv VALUES (:k, :v)
-- ----
-- purpose: query
DELETE FROM events WHERE at < date('now', '-30 days')
-- ----
-- purpose: query
WITH t AS (SELECT * FROM users) SELECT * FROM t
-- ----
-- purpose: query
VALUES (:one)
-- ----
-- purpose: query
REPLACE INTO kv VALUES (:k, :v) RETURNING *
-- ----
-- purpose: query
SELECT name, (SELECT count(*) FROM posts WHERE user_id = users.id) AS posts FROM users
-- ----
-- purpose: query
SELECT p.* FROM posts p WHERE p.id IN (SELECT post_id FROM likes GROUP BY post_id HAVING sum(weight) > :w)
