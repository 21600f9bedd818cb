-- Take a card off the board
DELETE FROM cards WHERE id = :id AND :svc_user_id IS NOT NULL
