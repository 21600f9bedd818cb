-- a comment ; with :bind and 'quote
SELECT 1
-- ----
/* block ; :x */ SELECT /* inside */ 1 /* after */
-- ----
SELECT 1 -- to the end
-- ----
SELECT 1; -- behind the semicolon
-- ----
SELECT 1 /* never closed
-- ----
SELECT 1; /* never closed ; DROP
-- ----
SELECT/**/1
-- ----
SELECT 1--1
-- ----
  SELECT
	1
;
-- ----
/* é ü 漢字 */ SELECT 'é', name FROM users -- 漢
-- ----
SELECT/*a*/name/*b*/FROM/*c*/users
-- ----
-- escapes
\uFEFFSELECT 1
-- ----
-- escapes
SELECT \uFEFFname FROM \uFEFF users
-- ----
-- escapes
SELECT \v1
-- ----
SELECT 1 /* * / */
-- ----
SELECT 1 /***/
-- ----
SELECT 2-1, 2- -1, 2 - - 1
-- ----
SELECT '--not a comment', "/*" FROM (SELECT 1 AS "/*")
-- ----
SELECT 1;;
-- ----
;SELECT 1
-- ----
SELECT 6/2, 6 / /* x */ 1
