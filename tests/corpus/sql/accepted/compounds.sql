SELECT id FROM users UNION SELECT id FROM posts
-- ----
SELECT id FROM users UNION ALL SELECT id FROM posts
-- ----
SELECT id FROM users INTERSECT SELECT user_id FROM posts
-- ----
SELECT id FROM users EXCEPT SELECT user_id FROM posts
-- ----
SELECT id FROM users UNION SELECT id FROM posts EXCEPT SELECT id FROM comments ORDER BY 1 LIMIT 5
-- ----
SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION ALL SELECT 4
-- ----
SELECT * FROM (SELECT id FROM users UNION SELECT id FROM posts) WHERE id > 3
-- ----
SELECT id FROM users UNION VALUES (1), (2)
-- ----
VALUES (1) UNION ALL SELECT 2
-- ----
SELECT id AS x FROM users UNION SELECT id FROM posts ORDER BY x COLLATE NOCASE DESC NULLS LAST LIMIT 3 OFFSET 1
-- ----
SELECT name FROM users WHERE id IN (SELECT user_id FROM posts UNION SELECT user_id FROM comments)
-- ----
SELECT name, 'user' AS kind FROM users UNION ALL SELECT title, 'post' FROM posts ORDER BY kind, name
