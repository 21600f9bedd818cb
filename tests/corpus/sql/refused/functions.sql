-- at: 1:8
-- says: load_extension
SELECT load_extension('x')
-- ----
SELECT LOAD_EXTENSION('x', 'y')
-- ----
SELECT "load_extension"('x')
-- ----
SELECT [load_extension]('x')
-- ----
SELECT `load_extension`('x')
-- ----
SELECT load_extension ('x')
-- ----
SELECT load_extension/**/('x')
-- ----
SELECT last_insert_rowid()
-- ----
SELECT changes()
-- ----
SELECT total_changes()
-- ----
SELECT sqlite_version()
-- ----
SELECT sqlite_source_id()
-- ----
SELECT sqlite_compileoption_get(1)
-- ----
SELECT sqlite_compileoption_used('x')
-- ----
SELECT sqlite_log(1, 'x')
-- ----
SELECT sqlite_offset(name) FROM users
-- ----
SELECT fts3_tokenizer('x')
-- ----
SELECT fts3_tokenizer('x', x'00')
-- ----
SELECT matchinfo(users) FROM users
-- ----
SELECT snippet(users) FROM users
-- ----
SELECT highlight(users, 1, 2, 3) FROM users
-- ----
SELECT bm25(users) FROM users
-- ----
SELECT fts5(1)
-- ----
SELECT rtreecheck('x')
-- ----
SELECT rtreenode(1, 2)
-- ----
SELECT subtype('x')
-- ----
SELECT readfile('/etc/passwd')
-- ----
SELECT writefile('x', 'y')
-- ----
SELECT edit('x')
-- ----
SELECT zipfile('x')
-- ----
SELECT sha1('x')
-- ----
SELECT eval('SELECT 1')
-- ----
SELECT regexp('a', 'b')
-- ----
SELECT match('a', 'b')
-- ----
SELECT name REGEXP 'a' FROM users
-- ----
SELECT name NOT REGEXP 'a' FROM users
-- ----
SELECT name MATCH 'a' FROM users
-- ----
SELECT name NOT MATCH 'a' FROM users
-- ----
SELECT RAISE(ABORT, 'x')
-- ----
SELECT RAISE(IGNORE)
-- ----
SELECT unknown_function(1)
-- ----
SELECT sqrt(2)
-- ----
SELECT pow(2, 3)
-- ----
SELECT median(age) FROM users
-- ----
SELECT percentile(age, 50) FROM users
-- ----
SELECT count(*), load_extension('x') OVER () FROM users
-- ----
SELECT load_extension(*) FROM users
-- ----
SELECT * FROM users WHERE load_extension('x')
-- ----
SELECT * FROM users ORDER BY load_extension('x')
-- ----
SELECT sum(age) FILTER (WHERE load_extension('x')) FROM users
-- ----
INSERT INTO users (name) VALUES (load_extension('x'))
-- ----
INSERT INTO users (name) VALUES ('x') RETURNING last_insert_rowid()
-- ----
UPDATE users SET name = load_extension('x')
-- ----
DELETE FROM users WHERE load_extension('x')
-- ----
SELECT abs(abs(abs(load_extension('x'))))
-- ----
SELECT json_each('[1]')
-- ----
SELECT "current_time"()
-- ----
SELECT "->"('{}', 'a')
-- ----
SELECT implies_nonnull_row(1, 2)
-- ----
SELECT unistr_quote('x')
-- ----
SELECT icu_load_collation('x', 'y')
-- ----
-- at: 2:9
-- says: RETURNING
SELECT changes,
        last_insert_rowid() FROM (SELECT 1 AS changes)
-- ----
-- at: 1:13
-- says: LIKE
SELECT name MATCH 'a' FROM users
-- ----
-- purpose: schema
CREATE TABLE t (a DEFAULT (load_extension('x')))
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (load_extension('x')))
-- ----
-- purpose: schema
CREATE TABLE t (a AS (load_extension('x')))
-- ----
-- purpose: schema
CREATE TABLE t (a, CHECK (load_extension('x')))
-- ----
-- purpose: schema
CREATE TABLE t (a CONSTRAINT x DEFERRABLE CHECK (load_extension('x')))
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON t (load_extension(a))
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX i ON t (a) WHERE load_extension(a)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT load_extension('x')
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t VALUES (load_extension('x'))
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN x DEFAULT (load_extension('x'))
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN x CHECK (sqlite_version() > x)
-- ----
-- at: 1:8
-- says: CURRENT_TIMESTAMP
SELECT now()
-- ----
-- says: LIKE
SELECT ilike(name, 'a%') FROM users
-- ----
-- says: strftime
SELECT DATE_FORMAT(at, '%Y') FROM events
-- ----
-- says: julianday
SELECT datediff('2026-01-02', '2026-01-01')
-- ----
-- says: json_group_array
SELECT array_agg(name) FROM users
-- ----
-- says: WITH RECURSIVE
SELECT generate_series(1, 3)
-- ----
-- says: instr
SELECT strpos(name, 'a') FROM users
-- ----
-- says: /llms.txt
SELECT whatever(name) FROM users
-- ----
-- says: LIKE '%word%'
SELECT bm25(users) FROM users
-- ----
-- at: 1:21
-- says: no lock
SELECT * FROM users FOR UPDATE
-- ----
-- at: 1:34
-- says: leave it out
SELECT * FROM users WHERE id = 1 FOR UPDATE
-- ----
-- says: leave it out
SELECT * FROM users LIMIT 1 FOR NO KEY UPDATE
-- ----
-- at: 1:32
-- says: ASCII
SELECT * FROM users WHERE name ILIKE 'a%'
-- ----
-- says: ON CONFLICT
INSERT INTO kv VALUES (1, 2) ON DUPLICATE KEY UPDATE v = 3
-- ----
-- says: LIMIT
SELECT TOP 10 name FROM users
