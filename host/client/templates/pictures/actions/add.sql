-- Add a picture, at most 50 for each visitor
-- files {"types": ["image/*"], "max_bytes": 10000000, "sizes": [512, 2048]}
-- default caption = ""
INSERT INTO photos (file, owner, caption)
SELECT :svc_file, :svc_user_id, trim(:caption)
WHERE (SELECT count(*) FROM photos WHERE owner = :svc_user_id) < 50
RETURNING id
