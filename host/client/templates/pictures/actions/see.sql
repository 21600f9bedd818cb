-- Everybody may see each picture that is in the album
SELECT 1 FROM photos WHERE file = :svc_file
