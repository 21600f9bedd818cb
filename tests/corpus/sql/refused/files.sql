-- at: 1:13
-- says: read and deleted
INSERT INTO svc_files (id) VALUES ('a')
-- ----
-- at: 1:14
-- says: read and deleted
REPLACE INTO svc_files (id) VALUES ('a')
-- ----
-- at: 1:8
-- says: read and deleted
UPDATE svc_files SET name = 'a'
-- ----
-- purpose: migration
-- at: 1:13
-- says: read and deleted
ALTER TABLE svc_files ADD COLUMN a
-- ----
-- purpose: migration
-- at: 1:19
-- says: read and deleted
CREATE INDEX a ON svc_files (name)
-- ----
-- purpose: schema
-- at: 1:14
-- says: reserved
CREATE TABLE svc_files (a)
-- ----
-- purpose: schema
-- at: 1:30
-- says: kept by the server
CREATE TABLE a (b REFERENCES svc_payments (session_id))
-- ----
-- at: 1:8
-- says: an action that writes
SELECT :svc_file_name, :svc_file
-- ----
-- at: 1:34
-- says: `:svc_file`, which is missing
INSERT INTO users (name) VALUES (:svc_file_name)
-- ----
-- at: 1:8
-- says: reserved
SELECT :svc_file_width
-- ----
-- purpose: query
-- at: 1:8
-- says: reserved
SELECT :svc_file
