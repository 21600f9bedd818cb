-- at: 1:8
-- says: `:name`
SELECT ?
-- ----
SELECT ?1
-- ----
SELECT ?, :a
-- ----
SELECT @a
-- ----
SELECT $a
-- ----
SELECT $a::b
-- ----
SELECT $a::b(c)
-- ----
SELECT :a::b
-- ----
SELECT :a(b)
-- ----
SELECT :a(b c)
-- ----
SELECT ::a
-- ----
SELECT :
-- ----
SELECT : a
-- ----
SELECT :1
-- ----
SELECT :1a
-- ----
SELECT :$a
-- ----
SELECT :a$b
-- ----
SELECT :é
-- ----
SELECT #a
-- ----
SELECT @
-- ----
SELECT :svc_x
-- ----
SELECT :svc_user
-- ----
SELECT :SVC_USER_ID
-- ----
SELECT :Svc_user_id
-- ----
SELECT :svc_user_id2
-- ----
SELECT :svc_user_names
-- ----
SELECT :svc_User_name
-- ----
SELECT :svc_
-- ----
SELECT * FROM users LIMIT ?
-- ----
INSERT INTO users (name) VALUES (?)
-- ----
UPDATE users SET name = $name
-- ----
DELETE FROM users WHERE id = @id
-- ----
SELECT 1 WHERE 1 IN (:a, ?)
-- ----
-- at: 2:3
-- says: reserved
SELECT ':svc_x',
  :svc_x
-- ----
SELECT :abbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
-- ----
-- purpose: query
-- says: visitor
SELECT :svc_user_id
-- ----
-- purpose: query
SELECT :svc_user_email
-- ----
-- purpose: query
SELECT :svc_user_name
-- ----
-- purpose: query
SELECT :svc_anything
-- ----
-- purpose: query
SELECT ?
-- ----
-- purpose: schema
-- says: script
CREATE TABLE t (a DEFAULT (:x))
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t VALUES (:x)
-- ----
-- purpose: schema
CREATE TABLE t (a); INSERT INTO t VALUES (?)
-- ----
-- purpose: schema
CREATE TABLE t (a); CREATE VIEW v AS SELECT :svc_user_id
-- ----
-- purpose: migration
INSERT INTO users (name) VALUES (:svc_user_id)
-- ----
-- purpose: migration
CREATE INDEX i ON users (age) WHERE age > :x
