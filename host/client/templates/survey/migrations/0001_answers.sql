-- A migration that was applied never changes: the next change is a file of its own, such as 0002_….sql.
CREATE TABLE answers (
  id INTEGER PRIMARY KEY,
  place TEXT NOT NULL CHECK (place IN ('desk', 'sofa', 'train', 'cafe', 'outside')),
  rating INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 5),
  comment TEXT CHECK (length(comment) <= 500),
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- Answers to look at while you change the pages: leave these lines out before the first `svc apply`.
INSERT INTO answers (place, rating, comment) VALUES
  ('desk', 4, 'Two screens, one plant, no noise.'), ('desk', 5, NULL), ('desk', 3, NULL), ('desk', 4, NULL),
  ('sofa', 5, 'Best ideas, worst posture.'), ('sofa', 4, NULL), ('train', 4, 'Nobody calls.'),
  ('train', 5, NULL), ('train', 4, NULL), ('cafe', 2, NULL), ('cafe', 3, 'Depends on the music.'), ('outside', 5, NULL);
