WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) SELECT i FROM n
-- ----
INSERT INTO orders (id, note) VALUES (:id, :note) ON CONFLICT (id) DO UPDATE SET note = excluded.note RETURNING *
-- ----
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK (length(a) < 9), b AS (a || 1)); CREATE INDEX i ON t (a) WHERE a IS NOT NULL; ALTER TABLE t ADD COLUMN c DEFAULT (1)
