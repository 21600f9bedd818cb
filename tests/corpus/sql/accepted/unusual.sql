SELECT 1 ORDER BY 1 COLLATE 'nocase'
-- ----
SELECT 'a' COLLATE "nocase"
-- ----
SELECT cast(1 as 'text')
-- ----
SELECT cast(1 as )
-- ----
SELECT cast(1 as int(3,+4))
-- ----
SELECT count(ALL name) FROM users
-- ----
SELECT users.'name' FROM users
-- ----
SELECT * FROM users AS 'u'
-- ----
SELECT * FROM users 'u' WHERE u.id=1
-- ----
INSERT INTO users(name,name) VALUES(1,2)
-- ----
SELECT * FROM users JOIN posts USING(id,id)
-- ----
-- purpose: migration
CREATE TABLE t(a int constraint foo)
-- ----
-- purpose: migration
CREATE TABLE t(a int constraint foo, b)
-- ----
-- purpose: migration
CREATE TABLE t(a int constraint foo constraint bar not null)
-- ----
-- purpose: migration
CREATE TABLE t(a int, constraint foo)
-- ----
-- purpose: migration
CREATE TABLE t(a int references users constraint d deferrable)
-- ----
-- purpose: migration
CREATE TABLE t(a int, unique(a) constraint foo check(a))
-- ----
-- purpose: migration
CREATE TABLE t(a int, constraint x unique(a), constraint y)
-- ----
-- purpose: migration
CREATE TABLE t(a int default abc)
-- ----
-- purpose: migration
CREATE TABLE t(a int default 'abc')
-- ----
-- purpose: migration
CREATE TABLE t(a int default "abc")
-- ----
-- purpose: migration
CREATE TABLE t(a int default current_date)
-- ----
-- purpose: migration
CREATE TABLE t(a int default true)
-- ----
-- purpose: migration
CREATE TABLE t(a int default -5.0e3)
-- ----
-- purpose: migration
CREATE TABLE t(a int, b int generated always as (a) stored not null)
-- ----
-- purpose: migration
CREATE TABLE t(a int, b generated always as (a) virtual)
-- ----
-- purpose: migration
CREATE TABLE t(generated int, always int)
-- ----
-- purpose: migration
CREATE TABLE t(a integer primary key autoincrement, stored int, strict text)
-- ----
-- purpose: migration
CREATE TABLE strict(rowid int) strict
-- ----
-- purpose: migration
CREATE TABLE t(a int) strict, strict
-- ----
-- purpose: migration
CREATE TABLE t(a integer, primary key(a autoincrement))
-- ----
-- purpose: migration
CREATE TABLE t(a int not null null)
-- ----
-- purpose: migration
CREATE TABLE t(a references users on insert cascade)
-- ----
-- purpose: migration
CREATE TABLE t(a references users match simple)
-- ----
-- purpose: migration
CREATE INDEX i ON users('name')
-- ----
-- purpose: migration
CREATE INDEX i ON users("name")
-- ----
-- purpose: migration
CREATE VIEW v(a,b) AS SELECT 1,2
-- ----
-- purpose: migration
CREATE VIEW v AS VALUES(1)
-- ----
-- purpose: migration
ALTER TABLE users ADD column column int
-- ----
-- purpose: migration
ALTER TABLE users ADD x constraint y default 1
-- ----
-- purpose: migration
INSERT INTO nodes DEFAULT VALUES
-- ----
SELECT sum(age) OVER win FROM users WINDOW win AS (win2), win2 AS (ORDER BY id)
-- ----
SELECT 1 FROM users WINDOW window AS (ORDER BY id)
-- ----
SELECT 1 AS window
-- ----
SELECT 1 AS over
-- ----
SELECT 1 filter
-- ----
SELECT 1 AS 'x y'
-- ----
SELECT (SELECT value FROM json_each('[1]'))
-- ----
SELECT 1 NOT NULL
-- ----
SELECT 1 NOTNULL
-- ----
SELECT 1 IS NOT 2
-- ----
SELECT (VALUES(1),(2))
-- ----
SELECT * FROM (VALUES(1,2),(3,4)) AS v
-- ----
SELECT column1 FROM (VALUES(1))
-- ----
SELECT 1 WHERE (1,2) IS (1,2)
-- ----
SELECT * FROM users WHERE (name, age) = (SELECT 'a', 1)
-- ----
SELECT iif(1,2,3,4,5)
-- ----
SELECT max(1,2), min(id) FILTER (WHERE id>1) FROM users
-- ----
SELECT 0xFFFFFFFFFFFFFFFF, 9223372036854775808, 1e999
-- ----
SELECT 1.e5, 1., 1_1.1_1
-- ----
SELECT "a;b" FROM (SELECT 1 AS "a;b")
-- ----
SELECT [a
b] FROM (SELECT 1 AS [a
b])
-- ----
UPDATE users SET "name"='x', [age]=1, `bio`=2, 'email'=3
-- ----
UPDATE users SET name='x' WHERE rowid=1
-- ----
UPDATE users AS x NOT INDEXED SET name=1
-- ----
DELETE FROM users AS x NOT INDEXED WHERE x.id=1
-- ----
INSERT INTO users(rowid,name) VALUES(1,'x')
-- ----
INSERT INTO kv VALUES(1,2) ON CONFLICT(k) DO UPDATE SET (k,v)=(SELECT 1,2)
-- ----
INSERT INTO kv SELECT 1,2 WHERE 1 ON CONFLICT DO NOTHING
-- ----
WITH t(a,b) AS (SELECT 1,2) UPDATE users SET name=(SELECT a FROM t), age=t.b FROM t
-- ----
SELECT * FROM users ORDER BY name COLLATE nocase ASC NULLS LAST
-- ----
SELECT DISTINCT * FROM users EXCEPT SELECT ALL * FROM users
-- ----
SELECT like('a','b'), glob('a','b'), replace('a','b','c'), if(1,2,3)
-- ----
SELECT date(), current_date, (current_timestamp)
-- ----
SELECT 'a' -> 'b' -> 'c' ->> 0 || 'x'
-- ----
SELECT * FROM users u JOIN posts p JOIN comments c ON 1
-- ----
SELECT * FROM users, posts ON 1
-- ----
SELECT * FROM users, posts USING(id)
-- ----
SELECT within FROM (SELECT 1 AS within)
-- ----
SELECT x.* FROM (SELECT 1) x, (SELECT 2) AS 'y'
-- ----
SELECT 'x'.* FROM (SELECT 1) x
-- ----
SELECT count(*) FILTER (WHERE 1) AS filter FROM users
-- ----
SELECT match, like, glob, regexp FROM (SELECT 1 AS match, 2 AS like, 3 AS glob, 4 AS regexp)
-- ----
SELECT 1 EXCEPT VALUES(1),(2)
-- ----
SELECT unistr('a') , soundex('b')
-- ----
REPLACE INTO kv DEFAULT VALUES
-- ----
INSERT INTO kv(k) VALUES(1) RETURNING k AS 'x', *, kv.v, (SELECT 1)
-- ----
SELECT * FROM json_each('[1]', '$') AS j WHERE j.type='integer'
-- ----
SELECT * FROM main.json_each('[1]')
-- ----
SELECT * FROM (json_each('[1]'))
-- ----
SELECT 1 AS "a""b", 2 AS ['x']
