-- The newest entries
SELECT id, name, message, created_at FROM entries ORDER BY id DESC LIMIT 100
