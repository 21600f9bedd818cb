-- What operators do: close a report, delete a namespace, and who it was.

-- NULL while somebody has yet to look at it.
ALTER TABLE reports ADD COLUMN closed_at INTEGER;

-- One that is being deleted is nobody's any more; its row goes when its projects have.
ALTER TABLE workspaces ADD COLUMN state TEXT NOT NULL DEFAULT 'active'
    CHECK (state IN ('active', 'deleting'));

-- The command, and the user who gave it.
ALTER TABLE operator_events ADD COLUMN command TEXT NOT NULL DEFAULT '';
ALTER TABLE operator_events ADD COLUMN actor TEXT NOT NULL DEFAULT '';
