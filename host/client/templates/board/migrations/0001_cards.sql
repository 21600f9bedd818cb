-- A migration that was applied never changes: the next change is a file of its own, such as 0002_….sql.
CREATE TABLE cards (
  id INTEGER PRIMARY KEY,
  lane TEXT NOT NULL CHECK (lane IN ('todo', 'doing', 'done')),
  title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
  -- Between those of its neighbours, so that a move changes one card alone.
  position REAL NOT NULL,
  author TEXT,
  changed_by TEXT,
  changed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX cards_by_lane ON cards (lane, position);
INSERT INTO cards (lane, title, position, author) VALUES
  ('todo', 'Open this page in a second window: both show the same, always', 1, 'svc'),
  ('todo', 'Change a colour in board.html, and save', 2, 'svc'),
  ('todo', 'Say in 0002_….sql when a card is due', 3, 'svc'),
  ('doing', 'Sign in, and drag this card to Done', 1, 'svc'),
  ('doing', 'Invite the others', 2, 'svc'),
  ('done', 'svc init --template board', 1, 'svc'),
  ('done', 'svc dev', 2, 'svc');
