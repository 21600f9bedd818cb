-- Delete an own picture: the file, and by its reference the photo
DELETE FROM svc_files WHERE id = :file AND user_id = :svc_user_id
