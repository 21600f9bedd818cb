-- Files that projects have sent, how large ones are stored, and what they take.

-- One row a distinct file and owner, however many revisions name it.
CREATE TABLE blobs (
    -- The project that has the file.
    owner_id TEXT NOT NULL,
    -- SHA-256 of the file.
    digest BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    -- List of the objects of a large file; NULL for one that is an object itself, which its digest names.
    list_digest BLOB,
    -- Until when the file waits for a publication that names it.
    staged_until INTEGER,
    PRIMARY KEY (owner_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_by_digest ON blobs (digest);
CREATE INDEX blobs_by_list ON blobs (list_digest) WHERE list_digest IS NOT NULL;
CREATE INDEX blobs_by_end ON blobs (staged_until) WHERE staged_until IS NOT NULL;

-- Objects of large files, by the list that names them.
CREATE TABLE file_objects (
    list_digest BLOB NOT NULL,
    number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (list_digest, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_objects_by_digest ON file_objects (digest);

-- What the files of an owner take.
CREATE TABLE file_owners (
    owner_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
