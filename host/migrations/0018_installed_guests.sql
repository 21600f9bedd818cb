-- Guests that all nodes of a cluster have. One machine has no row here: its folder of guests decides.

-- Home: global. One row for each kind of guest that was ever installed.
CREATE TABLE guests (
    -- `render` or `gate`.
    world TEXT PRIMARY KEY,
    -- The installed guests and the latest changes, as JSON in the form of the folder's own record.
    record TEXT NOT NULL
) STRICT;
