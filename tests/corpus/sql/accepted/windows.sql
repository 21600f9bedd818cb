SELECT row_number() OVER () FROM users
-- ----
SELECT row_number() OVER (ORDER BY id) FROM users
-- ----
SELECT name, rank() OVER (PARTITION BY age ORDER BY id DESC) FROM users
-- ----
SELECT dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, ntile(4) OVER w FROM users WINDOW w AS (ORDER BY age)
-- ----
SELECT lag(name) OVER w, lag(name, 2) OVER w, lag(name, 2, 'none') OVER w, lead(name) OVER w FROM users WINDOW w AS (ORDER BY id)
-- ----
SELECT first_value(name) OVER w, last_value(name) OVER w, nth_value(name, 2) OVER w FROM users WINDOW w AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
-- ----
SELECT sum(quantity) OVER (ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day ROWS 2 PRECEDING) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY price RANGE BETWEEN 1.5 PRECEDING AND 1.5 FOLLOWING) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day GROUPS UNBOUNDED PRECEDING EXCLUDE GROUP) FROM orders
-- ----
SELECT sum(quantity) OVER (ORDER BY day RANGE UNBOUNDED PRECEDING EXCLUDE NO OTHERS) FROM orders
-- ----
SELECT count(*) FILTER (WHERE quantity > 1) OVER (PARTITION BY customer) FROM orders
-- ----
SELECT count(*) FILTER (WHERE quantity > 1) FROM orders
-- ----
SELECT sum(price) FILTER (WHERE day >= :from AND day < :to) AS s FROM orders
-- ----
SELECT avg(price) OVER (win ROWS 1 PRECEDING) FROM orders WINDOW win AS (PARTITION BY customer ORDER BY day)
-- ----
SELECT avg(price) OVER a, sum(price) OVER b FROM orders WINDOW a AS (ORDER BY day), b AS (a ROWS 3 PRECEDING)
-- ----
SELECT max(price) OVER (PARTITION BY customer, item ORDER BY day DESC NULLS LAST) FROM orders
-- ----
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY id DESC) AS n FROM posts) WHERE n <= 3
-- ----
SELECT over, window, filter FROM (SELECT 1 AS over, 2 AS window, 3 AS filter)
-- ----
SELECT sum(over) OVER (ORDER BY over) FROM (SELECT 1 AS over)
-- ----
SELECT count(DISTINCT customer) FILTER (WHERE price > 0) FROM orders
-- ----
SELECT group_concat(item, ', ' ORDER BY price DESC) FROM orders
-- ----
SELECT string_agg(item, ', ' ORDER BY item COLLATE NOCASE, price NULLS LAST) FROM orders
-- ----
SELECT group_concat(DISTINCT item) FROM orders
-- ----
SELECT json_group_array(item ORDER BY price) FILTER (WHERE quantity > 0) FROM orders
-- ----
SELECT total(price), avg(price), min(price), max(price), sum(quantity), count(*) FROM orders
-- ----
SELECT day, sum(price) AS s, sum(sum(price)) OVER (ORDER BY day) AS running FROM orders GROUP BY day
