-- purpose: schema
-- at: 1:31
-- says: clock
CREATE TABLE t (a CHECK (a <= date('now')))
-- ----
-- purpose: schema
-- says: DEFAULT CURRENT_TIMESTAMP
CREATE TABLE t (a, CHECK (a < datetime ( 'NOW' , '+1 day' )))
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (a <= unixepoch()))
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (a <= "unixepoch"('subsec')))
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (a <= strftime('%Y')))
-- ----
-- purpose: schema
CREATE TABLE t (a CHECK (CASE WHEN a THEN (a IN (1, strftime('%Y', 'now'))) END))
-- ----
-- purpose: schema
CREATE TABLE t (a, b AS (timediff('now', a)))
-- ----
-- purpose: schema
CREATE TABLE t (a, b AS (datetime(a, 'localtime')) STORED)
-- ----
-- purpose: migration
-- says: clock
CREATE INDEX i ON users (date('now'))
-- ----
-- purpose: migration
CREATE INDEX i ON users (id, julianday(name) - julianday())
-- ----
-- purpose: migration
CREATE INDEX i ON users (id) WHERE name < time('now')
-- ----
-- purpose: migration
-- at: 1:43
ALTER TABLE users ADD COLUMN a CHECK (a < date('now'))
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN a AS (datetime(name, 'utc'))
