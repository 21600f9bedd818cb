SELECT abs(-1), char(65, 66), length('x'), octet_length('é'), lower('A'), upper('a'), unicode('a')
-- ----
SELECT hex('a'), unhex('41'), unhex('4-1', '-'), quote('x'), typeof(1), zeroblob(4)
-- ----
SELECT instr('abc', 'b'), substr('abc', 2), substr('abc', 2, 1), substring('abc', 1, 2), replace('a', 'a', 'b')
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
