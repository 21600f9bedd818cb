INSERT INTO posts (id, user_id, title) SELECT 1, 2, :svc_file WHERE (SELECT count(*) FROM posts) < 50 RETURNING id
-- ----
INSERT INTO users (name) VALUES (:svc_file || :svc_file_name || :svc_file_type || :svc_file_size || :svc_file_sha256)
-- ----
UPDATE users SET name = :svc_file WHERE name = :svc_user_id
-- ----
SELECT 1 FROM users WHERE name = :svc_file AND name = :svc_user_id
-- ----
SELECT id, name, type, size, sha256, width, height, user_id, created_at FROM svc_files WHERE id = :svc_file
-- ----
SELECT f.id FROM svc_files f JOIN users u ON u.name = f.user_id
-- ----
DELETE FROM svc_files WHERE id = :id AND user_id = :svc_user_id
-- ----
DELETE FROM svc_files
-- ----
WITH old AS (SELECT id FROM svc_files WHERE created_at < :before) DELETE FROM svc_files WHERE id IN old RETURNING id
-- ----
-- purpose: query
DELETE FROM svc_files WHERE id = :id
-- ----
-- purpose: schema
CREATE TABLE photos (file TEXT REFERENCES svc_files(id) ON DELETE CASCADE, owner TEXT)
-- ----
-- purpose: schema
CREATE TABLE albums (a INTEGER PRIMARY KEY, cover TEXT, FOREIGN KEY (cover) REFERENCES svc_files (id) ON DELETE SET NULL);
CREATE VIEW large AS SELECT id FROM svc_files WHERE size > 1000
-- ----
-- purpose: migration
ALTER TABLE users ADD COLUMN picture TEXT REFERENCES svc_files(id)
