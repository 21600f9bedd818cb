INSERT INTO users (name) VALUES (:name)
-- ----
INSERT INTO users (name, email, age) VALUES (:name, :email, :age)
-- ----
INSERT INTO users VALUES (1, 'a', 'b', 3, NULL, '{}', '2026-01-01')
-- ----
INSERT INTO users (name) VALUES ('a'), ('b'), ('c')
-- ----
INSERT INTO nodes DEFAULT VALUES
-- ----
INSERT INTO nodes DEFAULT VALUES RETURNING id
-- ----
INSERT INTO users (name) VALUES (:name) RETURNING id
-- ----
INSERT INTO users (name) VALUES (:name) RETURNING *
-- ----
INSERT INTO users (name) VALUES (:name) RETURNING id AS user_id, name || '!' AS greeting, (SELECT count(*) FROM posts)
-- ----
INSERT INTO users (name, email) SELECT name || '2', NULL FROM users
-- ----
INSERT INTO users (name) SELECT title FROM posts WHERE published = 1 ORDER BY id LIMIT 5
-- ----
INSERT INTO main.users (name) VALUES (1)
-- ----
INSERT INTO "users" ("name") VALUES (:n)
-- ----
INSERT INTO [users] ([name]) VALUES (:n)
-- ----
INSERT INTO `users` (`name`) VALUES (:n)
-- ----
INSERT INTO users AS u (name) VALUES (:n)
-- ----
INSERT OR IGNORE INTO users (name, email) VALUES (:n, :e)
-- ----
INSERT OR REPLACE INTO users (id, name) VALUES (:id, :n)
-- ----
INSERT OR ABORT INTO users (name) VALUES (:n)
-- ----
INSERT OR FAIL INTO users (name) VALUES (:n)
-- ----
INSERT OR ROLLBACK INTO users (name) VALUES (:n)
-- ----
REPLACE INTO users (id, name) VALUES (1, 'a')
-- ----
REPLACE INTO kv VALUES (:k, :v)
-- ----
INSERT INTO kv (k, v) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = excluded.v
-- ----
INSERT INTO kv (k, v) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET v = excluded.v WHERE kv.v IS NOT excluded.v RETURNING k, v
-- ----
INSERT INTO kv (k, v) VALUES (:k, :v) ON CONFLICT DO NOTHING
-- ----
INSERT INTO kv (k, v) VALUES (:k, :v) ON CONFLICT (k) DO NOTHING
-- ----
INSERT INTO users (name, email) VALUES (:n, :e) ON CONFLICT (email) WHERE email IS NOT NULL DO UPDATE SET name = excluded.name
-- ----
INSERT INTO users (id, name, email) VALUES (1, 'a', 'b') ON CONFLICT (id) DO NOTHING ON CONFLICT (email) DO UPDATE SET name = excluded.name ON CONFLICT DO NOTHING
-- ----
INSERT INTO likes (user_id, post_id) VALUES (:u, :p) ON CONFLICT (user_id, post_id) DO UPDATE SET weight = weight + 1
-- ----
INSERT INTO likes (user_id, post_id) VALUES (:u, :p) ON CONFLICT DO UPDATE SET weight = 0
-- ----
INSERT INTO kv SELECT k || '2', v FROM kv WHERE true ON CONFLICT (k) DO UPDATE SET v = excluded.v
-- ----
INSERT INTO kv AS t (k, v) VALUES (:k, 1) ON CONFLICT (k) DO UPDATE SET v = t.v + 1
-- ----
INSERT INTO users (name, email) VALUES (:n, :svc_user_email)
-- ----
INSERT INTO events (kind, payload, at) VALUES ('x', json_object('a', :a), datetime('now'))
-- ----
INSERT INTO posts (user_id, title, data) VALUES (:u, 'a; b', x'00ff')
-- ----
INSERT INTO events (kind) SELECT status FROM svc_payments WHERE user_id = :svc_user_id
-- ----
INSERT INTO nodes (id, parent) WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i, i / 2 FROM n
-- ----
INSERT INTO likes (user_id, post_id, weight) VALUES (1, (SELECT max(id) FROM posts), -1.5e3)
-- ----
INSERT INTO "odd name" ("the key", [select], `from`, "a""b") VALUES (1, 2, 3, 4)
-- ----
INSERT INTO kv (k, v) VALUES (:k, :v) ON CONFLICT (k) DO UPDATE SET (v) = (excluded.v)
-- ----
INSERT INTO orders (customer, item, quantity, price, day) VALUES ('a', 'b', 1, 1.0, date('now')) RETURNING total
