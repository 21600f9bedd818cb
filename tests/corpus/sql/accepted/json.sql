SELECT settings -> '$.theme', settings ->> '$.theme', settings ->> 'theme' FROM users
-- ----
SELECT settings->'a'->'b'->>'c' FROM users
-- ----
SELECT tags ->> 0, tags -> :i FROM posts
-- ----
SELECT json(settings), jsonb(settings) FROM users
-- ----
SELECT json_extract(settings, '$.a', '$.b[0]'), jsonb_extract(settings, '$.a') FROM users
-- ----
SELECT json_array(1, 'a', NULL), json_object('id', id, 'name', name) FROM users
-- ----
SELECT jsonb_array(1), jsonb_object('a', 1)
-- ----
SELECT json_array_length(tags), json_array_length(tags, '$.x') FROM posts
-- ----
SELECT json_insert(settings, '$.a', 1), json_replace(settings, '$.a', 2), json_set(settings, '$.a', json('[1]')), json_remove(settings, '$.a'), json_patch(settings, '{"a":1}') FROM users
-- ----
SELECT jsonb_insert(settings, '$.a', 1), jsonb_replace(settings, '$.a', 2), jsonb_set(settings, '$.a', 3), jsonb_remove(settings, '$.a'), jsonb_patch(settings, '{}') FROM users
-- ----
SELECT json_array_insert('[1]', '$[0]', 2), jsonb_array_insert('[1]', '$[0]', 2)
-- ----
SELECT json_type(settings), json_type(settings, '$.a'), json_valid(settings), json_valid(settings, 6), json_error_position(settings), json_quote(name), json_pretty(settings), json_pretty(settings, '  ') FROM users
-- ----
SELECT json_group_array(name), json_group_object(name, id), jsonb_group_array(name), jsonb_group_object(name, id) FROM users
-- ----
SELECT value FROM json_each('[1,2,3]')
-- ----
SELECT key, value, type, atom, id, parent, fullkey, path FROM json_each('{"a":1}')
-- ----
SELECT p.id, t.value FROM posts p, json_each(p.tags) AS t
-- ----
SELECT p.id FROM posts p WHERE EXISTS (SELECT 1 FROM json_each(p.tags) WHERE value = :tag)
-- ----
SELECT fullkey FROM json_tree(:doc, '$.a')
-- ----
SELECT u.id, j.key FROM users u LEFT JOIN json_tree(u.settings) j ON j.atom IS NOT NULL
-- ----
SELECT a.value FROM jsonb_each(jsonb('[1]')) a, jsonb_tree('[2]')
-- ----
SELECT json_object('list', (SELECT json_group_array(json_object('id', id, 'title', title)) FROM posts WHERE user_id = users.id)) FROM users
-- ----
SELECT 1 WHERE 2 IN (SELECT value FROM json_each(:list))
-- ----
SELECT * FROM json_each
-- ----
SELECT value FROM json_each WHERE json = '[1,2]'
-- ----
SELECT settings ->> '$.a' = 'b' AND settings -> 'c' IS NOT NULL FROM users ORDER BY settings ->> '$.rank' DESC
-- ----
INSERT INTO users (name, settings) SELECT value ->> 'name', value ->> 'settings' FROM json_each(:rows)
-- ----
UPDATE users SET settings = json_set(settings, '$.theme', :theme) WHERE id = :id
