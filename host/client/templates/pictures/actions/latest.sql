-- The newest pictures
SELECT photos.file, photos.caption, photos.created_at, svc_files.width, svc_files.height
FROM photos JOIN svc_files ON svc_files.id = photos.file
ORDER BY photos.id DESC LIMIT 200
