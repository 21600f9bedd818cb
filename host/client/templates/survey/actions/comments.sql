-- The newest comments
SELECT comment, place FROM answers WHERE comment IS NOT NULL ORDER BY id DESC LIMIT 12
