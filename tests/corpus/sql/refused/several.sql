-- at: 1:11
-- says: one statement
SELECT 1; SELECT 2
-- ----
-- at: 1:11
SELECT 1; DROP TABLE users
-- ----
-- at: 2:1
SELECT 1;
PRAGMA x
-- ----
SELECT 1;;SELECT 2;
-- ----
SELECT 1; x
-- ----
SELECT 1; -- 
DELETE FROM users
-- ----
SELECT 1; /* */ DELETE FROM users /*
-- ----
INSERT INTO kv VALUES ('a', 1); INSERT INTO kv VALUES ('b', 1)
-- ----
-- at: 1:1
-- says: no statement
-- ----
-- says: no statement
;
-- ----
-- says: no statement
;;;
-- ----
-- says: no statement
-- only a comment
-- ----
-- says: no statement
/* only a comment
-- ----
-- purpose: schema
-- says: no statement
-- nothing
-- ----
-- purpose: migration
-- says: no statement
;
-- ----
-- purpose: query
SELECT 1; SELECT 2
-- ----
SELECT 1; BEGIN; DELETE FROM users; COMMIT
-- ----
-- at: 1:9
-- says: NUL
-- escapes
SELECT 1\0
-- ----
-- says: NUL
-- escapes
SELECT 1\0; DROP TABLE users
-- ----
-- says: NUL
-- escapes
SELECT '\0'
-- ----
-- says: NUL
-- escapes
SELECT 1 -- \0
-- ----
-- says: NUL
-- escapes
SELECT 1 /* \0 */
-- ----
-- says: NUL
-- escapes
\0
-- ----
-- says: NUL
-- escapes
SELECT "a\0b" FROM users
