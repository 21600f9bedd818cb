-- All cards, in their order
SELECT id, lane, title, position, author FROM cards ORDER BY position, id LIMIT 500
