-- What drafts were made from, so that promoting one can say what it leaves out.

-- The revision that was live when a draft was made; NULL for revisions that are published without one.
ALTER TABLE revisions ADD COLUMN base_id TEXT;

UPDATE revisions SET base_id = (
    SELECT r.revision_id FROM releases r
    WHERE r.deployment_id = revisions.deployment_id AND r.at <= revisions.created_at
    ORDER BY r.id DESC LIMIT 1
) WHERE state = 'draft';
