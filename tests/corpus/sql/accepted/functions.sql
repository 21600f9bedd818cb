SELECT abs(-1), char(65, 66), length('x'), octet_length('é'), lower('A'), upper('a'), unicode('a')
-- ----
SELECT hex('a'), unhex('41'), unhex('4-1', '-'), quote('x'), typeof(1), zeroblob(4)
-- ----
SELECT instr('abc', 'b'), substr('abc', 2), substr('abc', 2, 1), substring('abc', 1, 2), replace('a', 'a', 'b')
-- ----
SELECT sqrt(2), pow(2, 3), power(2, 3), exp(1), ln(2), log(8), log(2, 8), log10(8), log2(8), mod(7, 3), pi()
-- ----
SELECT sin(1), cos(1), tan(1), asin(1), acos(1), atan(1), atan2(1, 2), sinh(1), cosh(1), tanh(1), asinh(1), acosh(1), atanh(0), degrees(1), radians(1)
-- ----
SELECT ceil(1.5), ceiling(1.5), floor(1.5), trunc(1.5)
-- ----
SELECT uuid() AS id
-- ----
SELECT median(age), percentile(age, 90) AS p90, percentile_cont(age, 0.9) AS c90, percentile_disc(age, 0.9) AS d90 FROM users
-- ----
SELECT trim(' a '), ltrim(' a'), rtrim('a '), trim('xax', 'x'), ltrim('xa', 'x'), rtrim('ax', 'x')
-- ----
SELECT round(1.5), round(1.234, 2), sign(-3), random(), randomblob(8)
-- ----
SELECT printf('%d %s', 1, 'a'), format('%.2f', 1.5), concat('a', 'b', 1), concat_ws(',', 'a', 'b')
-- ----
SELECT glob('a*', 'abc'), like('a%', 'abc'), like('a\%', 'a%', '\')
-- ----
SELECT unistr('\0041'), soundex('Robert')
-- ----
SELECT date('now'), time('now', 'localtime'), datetime('now', '+1 day', 'start of month'), julianday('now'), unixepoch('now', 'subsec'), strftime('%Y-%m-%d', 'now'), timediff('2026-01-02', '2026-01-01')
-- ----
SELECT date(), time(), datetime(), unixepoch()
-- ----
SELECT LOWER(name), "lower"(name), [upper](name), `trim`(name), Length (name) FROM users
-- ----
SELECT hex(randomblob(16)) AS token
-- ----
SELECT strftime('%s', at) - strftime('%s', 'now') FROM events
-- ----
SELECT coalesce(nullif(trim(bio), ''), 'none'), iif(age, 1, 0), iif(age, 1) FROM users
-- ----
SELECT min(age), max(age), avg(age), sum(age), total(age), count(*), group_concat(name), group_concat(name, ';') FROM users
-- ----
SELECT replace(replace(replace(name, '<', '&lt;'), '>', '&gt;'), '&', '&amp;') FROM users
-- ----
SELECT CAST(strftime('%Y', created_at) AS INTEGER) AS year, count(*) FROM users GROUP BY year ORDER BY year
-- ----
SELECT instr(name, ';') > 0 OR instr(name, ':x') FROM users
