-- The visitor's own pictures
SELECT file FROM photos WHERE owner = :svc_user_id
