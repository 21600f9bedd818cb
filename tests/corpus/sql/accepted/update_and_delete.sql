UPDATE users SET name = :name WHERE id = :id
-- ----
UPDATE users SET name = :name, age = age + 1, bio = NULL WHERE id = :id
-- ----
UPDATE users SET (name, email) = (:name, :email) WHERE id = :id
-- ----
UPDATE users SET (name, email) = (SELECT title, NULL FROM posts LIMIT 1)
-- ----
UPDATE users AS u SET name = upper(u.name) WHERE u.age > 3
-- ----
UPDATE main.users SET name = 'x'
-- ----
UPDATE "users" SET "name" = 'x' WHERE "id" = 1
-- ----
UPDATE [users] SET [name] = 'x'
-- ----
UPDATE users SET name = 'x' RETURNING id, name
-- ----
UPDATE users SET name = 'x' WHERE id = 1 RETURNING *
-- ----
UPDATE OR IGNORE users SET email = :e
-- ----
UPDATE OR REPLACE users SET email = :e WHERE id = :id
-- ----
UPDATE OR ROLLBACK users SET email = :e
-- ----
UPDATE OR ABORT users SET email = :e
-- ----
UPDATE OR FAIL users SET email = :e
-- ----
UPDATE users SET name = p.title FROM posts AS p WHERE p.user_id = users.id
-- ----
UPDATE users SET name = s.n FROM (SELECT user_id, count(*) AS n FROM posts GROUP BY user_id) AS s WHERE s.user_id = users.id
-- ----
UPDATE users SET name = p.title FROM posts p JOIN comments c ON c.post_id = p.id WHERE p.user_id = users.id RETURNING users.id
-- ----
UPDATE posts INDEXED BY posts_by_user SET score = 1 WHERE user_id = 1
-- ----
UPDATE posts NOT INDEXED SET score = 1 WHERE user_id = 1
-- ----
UPDATE posts SET score = (SELECT sum(weight) FROM likes WHERE post_id = posts.id)
-- ----
UPDATE posts SET score = CASE WHEN score > 10 THEN 10 ELSE score END
-- ----
UPDATE posts SET published = NOT published WHERE user_id = (SELECT id FROM users WHERE email = :svc_user_email)
-- ----
UPDATE posts SET score = p.amount FROM svc_payments AS p WHERE p.user_id = :svc_user_id
-- ----
UPDATE posts SET title = 'a', title = 'b'
-- ----
UPDATE posts SET (title, title) = ('a', 'b')
-- ----
WITH top AS (SELECT id FROM posts ORDER BY score DESC LIMIT 3) UPDATE posts SET score = 0 WHERE id IN (SELECT id FROM top) RETURNING id
-- ----
DELETE FROM users
-- ----
DELETE FROM users WHERE id = :id
-- ----
DELETE FROM users WHERE id = :id RETURNING *
-- ----
DELETE FROM users AS u WHERE u.id = 1
-- ----
DELETE FROM main.users WHERE id = 1
-- ----
DELETE FROM posts INDEXED BY posts_by_user WHERE user_id = 1
-- ----
DELETE FROM posts NOT INDEXED WHERE user_id = 1
-- ----
DELETE FROM posts WHERE id IN (SELECT id FROM posts ORDER BY id LIMIT 10)
-- ----
DELETE FROM posts WHERE user_id NOT IN (SELECT id FROM users) AND EXISTS (SELECT 1 FROM comments WHERE post_id = posts.id)
-- ----
DELETE FROM likes WHERE (user_id, post_id) = (:u, :p) RETURNING weight
-- ----
DELETE FROM "odd name" WHERE "the key" = 1
-- ----
WITH old AS (SELECT id FROM events WHERE at < :before) DELETE FROM events WHERE id IN old
-- ----
WITH old AS (SELECT id FROM events WHERE at < :before) DELETE FROM events WHERE id IN (SELECT id FROM old) RETURNING kind, payload
-- ----
DELETE FROM events WHERE json_extract(payload, '$.user') = :svc_user_id
-- ----
DELETE FROM 'events' WHERE id = 1
