SELECT * FROM users JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users INNER JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users LEFT JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users LEFT OUTER JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users RIGHT JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users RIGHT OUTER JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users FULL JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users FULL OUTER JOIN posts ON posts.user_id = users.id
-- ----
SELECT * FROM users CROSS JOIN posts
-- ----
SELECT * FROM users CROSS JOIN posts WHERE posts.user_id = users.id
-- ----
SELECT * FROM posts NATURAL JOIN likes
-- ----
SELECT * FROM posts NATURAL LEFT JOIN likes
-- ----
SELECT * FROM posts NATURAL LEFT OUTER JOIN likes
-- ----
SELECT * FROM posts NATURAL FULL OUTER JOIN likes
-- ----
SELECT * FROM posts NATURAL INNER JOIN likes
-- ----
SELECT * FROM posts JOIN likes USING (user_id)
-- ----
SELECT * FROM comments JOIN likes USING (user_id, post_id)
-- ----
SELECT * FROM comments FULL JOIN likes USING (user_id, post_id)
-- ----
SELECT * FROM users, posts, comments WHERE users.id = posts.user_id AND comments.post_id = posts.id
-- ----
SELECT * FROM users u JOIN posts p ON p.user_id = u.id JOIN comments c ON c.post_id = p.id LEFT JOIN likes l ON l.post_id = p.id AND l.user_id = u.id
-- ----
SELECT * FROM users u JOIN (posts p JOIN comments c ON c.post_id = p.id) ON p.user_id = u.id
-- ----
SELECT * FROM (users u LEFT JOIN posts p ON p.user_id = u.id) LEFT JOIN comments c ON c.post_id = p.id
-- ----
SELECT * FROM users u JOIN (SELECT user_id, count(*) AS n FROM posts GROUP BY user_id) AS counts ON counts.user_id = u.id
-- ----
SELECT a.id, b.id FROM nodes a JOIN nodes b ON b.parent = a.id
-- ----
SELECT * FROM users JOIN posts
-- ----
SELECT * FROM users JOIN posts ON users.id = posts.user_id AND posts.published
-- ----
SELECT u.name, p.title FROM users AS u LEFT JOIN published_posts AS p ON p.user_id = u.id WHERE p.id IS NULL
-- ----
SELECT p.amount FROM users JOIN svc_payments AS p ON p.user_id = users.email
-- ----
SELECT * FROM users u, (SELECT 1 AS one) s, json_each('[1,2]') j
-- ----
SELECT * FROM users LEFT JOIN posts ON users.id = posts.user_id RIGHT JOIN comments ON comments.post_id = posts.id
-- ----
SELECT * FROM users JOIN posts ON (users.id = posts.user_id) WHERE (posts.title LIKE 'a%')
-- ----
SELECT * FROM comments AS c JOIN comments AS parent ON c.parent_id = parent.id
-- ----
SELECT left.id FROM nodes AS left JOIN nodes AS right ON left.id = right.parent
-- ----
SELECT * FROM users LEFT JOIN (posts) ON posts.user_id = users.id
-- ----
SELECT * FROM main.users AS u INNER JOIN main.posts AS p ON u.id = p.user_id
