-- at: 1:15
-- says: SQLite's own
SELECT * FROM sqlite_master
-- ----
SELECT * FROM sqlite_schema
-- ----
SELECT * FROM main.sqlite_schema
-- ----
SELECT * FROM "sqlite_master"
-- ----
SELECT * FROM [SQLITE_MASTER]
-- ----
SELECT * FROM 'sqlite_master'
-- ----
SELECT * FROM sqlite_temp_master
-- ----
SELECT * FROM sqlite_sequence
-- ----
SELECT * FROM sqlite_stat1
-- ----
SELECT * FROM sqlite_stat4
-- ----
SELECT * FROM sqlite_dbpage
-- ----
SELECT * FROM sqlite_dbpage('main')
-- ----
SELECT * FROM dbstat
-- ----
SELECT * FROM DBSTAT('main')
-- ----
SELECT * FROM "dbstat"
-- ----
SELECT sql FROM users, sqlite_schema
-- ----
SELECT 1 WHERE 'x' IN sqlite_master
-- ----
UPDATE sqlite_sequence SET seq = 0
-- ----
DELETE FROM sqlite_sequence
-- ----
INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)
-- ----
SELECT * FROM pragma_table_info('users')
-- ----
SELECT * FROM pragma_table_list
-- ----
SELECT * FROM "pragma_table_list"
-- ----
SELECT * FROM pragma_database_list()
-- ----
SELECT * FROM PRAGMA_function_list
-- ----
SELECT name FROM users, pragma_table_info(users.name)
-- ----
SELECT 1 WHERE 'x' IN (SELECT name FROM pragma_table_list)
-- ----
SELECT 1 WHERE 'x' IN pragma_table_list
-- ----
SELECT 1 IN pragma_table_info('users')
-- ----
SELECT * FROM fts3tokenize('simple', 'a b')
-- ----
SELECT * FROM fts3tokenize
-- ----
SELECT * FROM fts4aux('main', 'x')
-- ----
SELECT * FROM generate_series(1, 10)
-- ----
SELECT * FROM users(1)
-- ----
SELECT * FROM main.pragma_table_list
-- ----
SELECT * FROM csv('x')
-- ----
SELECT * FROM readfile('/etc/passwd')
-- ----
SELECT * FROM bytecode('SELECT 1')
-- ----
SELECT * FROM tables_used('SELECT 1')
-- ----
SELECT 1 IN unknown_function(1)
-- ----
DELETE FROM json_each
-- ----
INSERT INTO json_tree VALUES (1)
-- ----
UPDATE json_each SET value = 1
-- ----
SELECT * FROM temp.users
-- ----
SELECT * FROM TEMP.users
-- ----
SELECT * FROM "temp"."users"
-- ----
SELECT * FROM [other].users
-- ----
SELECT * FROM temp.sqlite_master
-- ----
SELECT * FROM other.users
-- ----
SELECT 'other'.users.name FROM users
-- ----
SELECT temp.users.name FROM users
-- ----
SELECT other.users.name FROM users
-- ----
INSERT INTO temp.users VALUES (1)
-- ----
UPDATE other.users SET name = 1
-- ----
DELETE FROM temp.users
-- ----
SELECT 1 WHERE 1 IN other.users
-- ----
SELECT * FROM users JOIN temp.posts
-- ----
SELECT * FROM users JOIN posts ON other.users.id = 1
-- ----
SELECT * FROM users JOIN posts INDEXED BY sqlite_autoindex_users_1
-- ----
-- at: 1:15
-- says: `main`
SELECT * FROM temp.users u
-- ----
-- at: 1:8
-- says: `main`
SELECT temp.users.id FROM users
-- ----
-- purpose: schema
CREATE TABLE sqlite_x (a)
-- ----
-- purpose: schema
CREATE TABLE temp.t (a)
-- ----
-- purpose: schema
CREATE TABLE other.t (a)
-- ----
-- purpose: schema
CREATE TABLE pragma_x (a)
-- ----
-- purpose: schema
CREATE TABLE json_each (a)
-- ----
-- purpose: schema
CREATE TABLE dbstat (a)
-- ----
-- purpose: schema
CREATE TABLE t (a REFERENCES sqlite_master)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX temp.i ON t (a)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW temp.v AS SELECT 1
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM sqlite_schema
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE INDEX sqlite_i ON t (a)
-- ----
-- purpose: migration
CREATE INDEX i ON sqlite_master (name)
-- ----
-- purpose: migration
ALTER TABLE sqlite_master ADD COLUMN x
-- ----
-- purpose: migration
ALTER TABLE temp.users ADD COLUMN x
-- ----
SELECT data FROM users JOIN SQLITE_DBPAGE
-- ----
SELECT 1 IN (SELECT pgno FROM "sqlite_dbpage")
-- ----
UPDATE sqlite_dbpage SET data = zeroblob(4096)
-- ----
INSERT INTO main.sqlite_dbpage (pgno, data) VALUES (1, NULL)
-- ----
DELETE FROM sqlite_dbpage
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM sqlite_dbpage
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT * FROM t, sqlite_dbpage('main')
-- ----
-- purpose: schema
CREATE VIRTUAL TABLE t USING sqlite_dbpage
