SELECT 1
-- ----
SELECT 1;
-- ----
select * from users
-- ----
SELECT id, name FROM users WHERE id = :id
-- ----
SELECT DISTINCT name FROM users
-- ----
SELECT ALL name FROM users
-- ----
SELECT u.* FROM users AS u
-- ----
SELECT u.*, p.title FROM users u, posts p WHERE p.user_id = u.id
-- ----
SELECT main.users.name FROM main.users
-- ----
SELECT "main".users.name FROM "MAIN"."users"
-- ----
SELECT name AS "the name", email 'the email' FROM users
-- ----
SELECT name n, email AS [e] FROM users AS `u`
-- ----
SELECT count(*), count(DISTINCT name), count(email) FROM users
-- ----
SELECT count() FROM users
-- ----
SELECT name, count(*) AS n FROM users GROUP BY name HAVING n > 1
-- ----
SELECT count(*) FROM users HAVING count(*) > 1
-- ----
SELECT name FROM users ORDER BY name COLLATE NOCASE DESC, id
-- ----
SELECT name FROM users ORDER BY 1, 2 + id
-- ----
SELECT name FROM users ORDER BY age NULLS FIRST
-- ----
SELECT name FROM users ORDER BY age DESC NULLS LAST, name ASC NULLS FIRST
-- ----
SELECT name FROM users LIMIT 10
-- ----
SELECT name FROM users LIMIT 10 OFFSET 20
-- ----
SELECT name FROM users LIMIT 20, 10
-- ----
SELECT name FROM users LIMIT :limit OFFSET :offset
-- ----
SELECT name FROM users LIMIT (SELECT count(*) / 2 FROM users)
-- ----
SELECT name FROM users LIMIT -1
-- ----
SELECT * FROM users WHERE age BETWEEN 18 AND 65
-- ----
SELECT * FROM users WHERE age NOT BETWEEN :a AND :b AND name <> ''
-- ----
SELECT * FROM users WHERE name LIKE 'a%' ESCAPE '\'
-- ----
SELECT * FROM users WHERE name NOT LIKE '%' || :part || '%'
-- ----
SELECT * FROM users WHERE name GLOB 'A*' AND name NOT GLOB '*z'
-- ----
SELECT * FROM users WHERE email IS NULL
-- ----
SELECT * FROM users WHERE email IS NOT NULL
-- ----
SELECT * FROM users WHERE email ISNULL OR bio NOTNULL OR age NOT NULL
-- ----
SELECT * FROM users WHERE email IS :email
-- ----
SELECT * FROM users WHERE email IS NOT DISTINCT FROM :email
-- ----
SELECT * FROM users WHERE email IS DISTINCT FROM name
-- ----
SELECT * FROM users WHERE id IN (1, 2, 3)
-- ----
SELECT * FROM users WHERE id IN ()
-- ----
SELECT * FROM users WHERE id NOT IN (SELECT user_id FROM posts)
-- ----
SELECT * FROM users WHERE (id, 1) IN post_counts
-- ----
SELECT * FROM nodes WHERE (id, parent) IN (SELECT user_id, post_id FROM likes)
-- ----
SELECT * FROM users WHERE EXISTS (SELECT 1 FROM posts WHERE posts.user_id = users.id)
-- ----
SELECT * FROM users WHERE NOT EXISTS (SELECT 1 FROM posts WHERE posts.user_id = users.id)
-- ----
SELECT * FROM users WHERE id = (SELECT max(id) FROM users)
-- ----
SELECT (SELECT title FROM posts WHERE user_id = u.id ORDER BY id DESC LIMIT 1) AS latest FROM users u
-- ----
SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'adult' ELSE 'old' END FROM users
-- ----
SELECT CASE age WHEN 1 THEN 'one' WHEN 2 THEN 'two' END FROM users
-- ----
SELECT CASE WHEN a THEN CASE WHEN b THEN 1 ELSE 2 END ELSE 3 END FROM (SELECT 1 AS a, 0 AS b)
-- ----
SELECT CAST(age AS TEXT), CAST('1' AS INTEGER), CAST(1 AS DECIMAL(10, 2)), CAST(1 AS VARCHAR(255)) FROM users
-- ----
SELECT CAST(x'41' AS TEXT), CAST(1 AS UNSIGNED BIG INT), CAST(1 AS "odd type")
-- ----
SELECT 1 + 2 * 3 - 4 / 5 % 6, 1 << 2, 8 >> 1, 6 & 3, 6 | 3, ~6, -1, +1, NOT 1
-- ----
SELECT 1 = 1, 1 == 1, 1 <> 2, 1 != 2, 1 < 2, 1 <= 2, 2 > 1, 2 >= 1
-- ----
SELECT 1 AND 0 OR 1, NOT (1 AND 0)
-- ----
SELECT - - 1, ~ - + 2, NOT NOT 1
-- ----
SELECT 'a' || 'b' || 1
-- ----
SELECT 1.5, .5, 5., 1e3, 1.5E-3, 0x1F, 1_000, 1_0.5_5e1_0, 0xAB_CD
-- ----
SELECT x'C0FFEE', X'00', x''
-- ----
SELECT 'it''s', '', 'a "quoted" word', 'semi;colon', ':notabind ? @x $y'
-- ----
SELECT "name" FROM "users" WHERE "users"."id" = 1
-- ----
SELECT [name] FROM [users] WHERE [users].[id] = 1
-- ----
SELECT `name` FROM `users` WHERE `users`.`id` = 1
-- ----
SELECT "the key", [select], `from`, "a""b" FROM "odd name"
-- ----
SELECT 'users'.name FROM 'users'
-- ----
SELECT NULL, TRUE, FALSE, true IS TRUE
-- ----
SELECT CURRENT_DATE, CURRENT_TIME, CURRENT_TIMESTAMP
-- ----
SELECT rowid, _rowid_, oid FROM users
-- ----
SELECT users.rowid FROM users
-- ----
SELECT key, abort, action, after, plan, query, temp, view, row, rows FROM (SELECT 1 AS key, 2 AS abort, 3 AS action, 4 AS after, 5 AS plan, 6 AS query, 7 AS temp, 8 AS view, 9 AS row, 10 AS rows)
-- ----
SELECT (1, 2) = (1, 2), (1, 2) < (1, 3)
-- ----
SELECT * FROM likes WHERE (user_id, post_id) > (:u, :p) ORDER BY user_id, post_id LIMIT 10
-- ----
SELECT * FROM likes WHERE (user_id, post_id) IN (VALUES (1, 2), (3, 4))
-- ----
SELECT max(age, 18), min(age, 65) FROM users
-- ----
SELECT iif(age > 18, 'a', 'b'), if(age > 18, 'a', 'b'), coalesce(NULL, 1), ifnull(NULL, 1), nullif(1, 1) FROM users
-- ----
SELECT * FROM published_posts
-- ----
SELECT title FROM published_posts p JOIN post_counts c USING (user_id) WHERE c.n > 3
-- ----
SELECT * FROM posts INDEXED BY posts_by_user WHERE user_id = 1
-- ----
SELECT * FROM posts NOT INDEXED WHERE user_id = 1
-- ----
SELECT * FROM posts AS p INDEXED BY posts_by_user WHERE p.user_id = 1
-- ----
SELECT status, amount FROM svc_payments WHERE user_id = :svc_user_id
-- ----
SELECT svc_column, sqlite_column AS svc_alias FROM tables_with_svc_inside AS svc_t
-- ----
SELECT svc_t.svc_column FROM tables_with_svc_inside svc_t
-- ----
SELECT 1 AS svc_x, 2 AS sqlite_x
-- ----
SELECT 'svc_secret', 'PRAGMA x', '; DROP TABLE users; --'
-- ----
SELECT name COLLATE NOCASE = 'X' COLLATE BINARY FROM users
-- ----
SELECT * FROM (SELECT * FROM (SELECT * FROM users))
-- ----
SELECT * FROM (users)
-- ----
SELECT * FROM ((users))
-- ----
SELECT * FROM (users, posts)
-- ----
VALUES (1)
-- ----
VALUES (1, 'a'), (2, 'b')
-- ----
VALUES (1, 2), (3, 4) UNION SELECT 5, 6 ORDER BY 1 LIMIT 1
-- ----
SELECT unlikely(age > 3), likely(age < 3), likelihood(age = 3, 0.5) FROM users
-- ----
SELECT ALL * FROM users WHERE ((((age))))
-- ----
SELECT a.name FROM users AS a WHERE a.age > (SELECT avg(b.age) FROM users AS b WHERE b.name = a.name)
-- ----
SELECT name FROM users WHERE :x IS NULL OR name = :x
-- ----
SELECT :a, :b, :a, :B
-- ----
SELECT :_x1, :a_long_name_of_a_bind_that_is_still_short_enough
-- ----
SELECT :svc_user_id, :svc_user_email
-- ----
SELECT :svc_user_name, coalesce(:svc_user_name, :svc_user_email, 'somebody') AS who
-- ----
SELECT name FROM users WHERE id=:id;;
-- ----
SELECT -:x, +:y, ~:z
-- ----
SELECT 1 IS NOT 2, 1 IS NOT NULL
-- ----
SELECT 5 NOT IN (1,2), 'a' NOT LIKE 'b'
-- ----
SELECT name, replace(name, 'a', 'b') FROM users
-- ----
SELECT * FROM users GROUP BY name, age HAVING max(id)
-- ----
SELECT DISTINCT name, age FROM users WHERE name IN (SELECT DISTINCT title FROM posts)
-- ----
SELECT if FROM (SELECT 1 AS if)
-- ----
SELECT 1 AS "select", 2 AS "from", 3 AS ""
