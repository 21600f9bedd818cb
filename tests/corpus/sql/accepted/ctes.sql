WITH a AS (SELECT 1) SELECT * FROM a
-- ----
WITH a(x) AS (SELECT 1), b(y) AS (SELECT x + 1 FROM a) SELECT x, y FROM a, b
-- ----
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n
-- ----
WITH RECURSIVE n(i) AS (VALUES (1) UNION SELECT i + 1 FROM n LIMIT 10) SELECT i FROM n
-- ----
WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n
-- ----
WITH a AS MATERIALIZED (SELECT * FROM users) SELECT name FROM a
-- ----
WITH a AS NOT MATERIALIZED (SELECT * FROM users) SELECT name FROM a
-- ----
WITH RECURSIVE tree(id, path) AS (SELECT id, label FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, tree.path || '/' || n.label FROM nodes n JOIN tree ON n.parent = tree.id ORDER BY 1) SELECT path FROM tree
-- ----
WITH RECURSIVE tree(id, depth) AS (SELECT :root, 0 UNION SELECT nodes.id, depth + 1 FROM nodes, tree WHERE nodes.parent = tree.id ORDER BY 2 DESC) SELECT * FROM tree
-- ----
WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT x FROM a
-- ----
SELECT * FROM (WITH a AS (SELECT 1 AS x) SELECT x FROM a)
-- ----
SELECT (WITH a AS (SELECT 1 AS x) SELECT x FROM a)
-- ----
WITH a AS (SELECT 1 AS x) SELECT * FROM a WHERE x IN (WITH b AS (SELECT 1 AS y) SELECT y FROM b)
-- ----
WITH a AS (SELECT id FROM users) DELETE FROM posts WHERE user_id IN a
-- ----
WITH a AS (SELECT id FROM users) DELETE FROM posts WHERE user_id IN (SELECT id FROM a)
-- ----
WITH a AS (SELECT 1 AS id) UPDATE posts SET score = 1 WHERE id IN (SELECT id FROM a)
-- ----
WITH a(n, e) AS (VALUES ('x', 'y')) INSERT INTO users (name, email) SELECT n, e FROM a
-- ----
WITH a AS (SELECT 1 AS x) VALUES ((SELECT x FROM a))
-- ----
WITH a AS (SELECT 1 AS x), b AS (SELECT 2 AS x) SELECT * FROM a UNION ALL SELECT * FROM b
-- ----
WITH b AS (SELECT * FROM a), a AS (SELECT 1 AS x) SELECT * FROM b
-- ----
WITH "quoted name" AS (SELECT 1 AS x) SELECT x FROM "quoted name"
-- ----
WITH recursive_looking AS (SELECT 1 AS x) SELECT x FROM recursive_looking
-- ----
WITH RECURSIVE fib(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM fib LIMIT 20) SELECT group_concat(a) FROM fib
-- ----
WITH x AS (SELECT user_id, sum(amount) AS s FROM svc_payments GROUP BY user_id) SELECT * FROM x WHERE s > 100
-- ----
WITH RECURSIVE days(d) AS (SELECT date('now', '-7 days') UNION ALL SELECT date(d, '+1 day') FROM days WHERE d < date('now')) SELECT d, count(e.id) FROM days LEFT JOIN events e ON date(e.at) = d GROUP BY d
-- ----
WITH RECURSIVE xaxis(x) AS (VALUES(-2.0) UNION ALL SELECT x+0.5 FROM xaxis WHERE x<1.2), yaxis(y) AS (VALUES(-1.0) UNION ALL SELECT y+0.5 FROM yaxis WHERE y<1.0), m(iter, cx, cy, x, y) AS (SELECT 0, x, y, 0.0, 0.0 FROM xaxis, yaxis UNION ALL SELECT iter+1, cx, cy, x*x-y*y + cx, 2.0*x*y + cy FROM m WHERE (x*x + y*y) < 4.0 AND iter<28), m2(iter, cx, cy) AS (SELECT max(iter), cx, cy FROM m GROUP BY cx, cy), a(t) AS (SELECT group_concat(substr(' .+*#', 1+min(iter/7,4), 1), '') FROM m2 GROUP BY cy) SELECT group_concat(rtrim(t),x'0a') FROM a
