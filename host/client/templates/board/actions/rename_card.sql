-- Change what a card says
UPDATE cards SET title = trim(:title), changed_by = :svc_user_id, changed_at = CURRENT_TIMESTAMP
WHERE id = :id
