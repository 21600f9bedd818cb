-- Add a card at the end of a lane
INSERT INTO cards (lane, title, position, author, changed_by)
VALUES (
  :lane, trim(:title),
  (SELECT coalesce(max(position), 0) + 1 FROM cards WHERE lane = :lane),
  :author, :svc_user_id
)
