-- Move a card to a place in a lane
UPDATE cards SET lane = :lane, position = :position, changed_by = :svc_user_id, changed_at = CURRENT_TIMESTAMP
WHERE id = :id
