PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE svc_payments (
    session_id TEXT NOT NULL UNIQUE,
    price_id TEXT NOT NULL,
    price_label TEXT NOT NULL,
    amount INTEGER NOT NULL,
    currency TEXT NOT NULL,
    user_id TEXT,
    email TEXT,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE svc_migrations (
    version INTEGER PRIMARY KEY,
    checksum TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO svc_migrations VALUES(1,'afdc858f74cd6853ea2bc5217ba6e47e1b98f8f7e599012db14b83bdcce7fd85');
INSERT INTO svc_migrations VALUES(2,'7059f151c6135887e5e222b8bad962c2e92a7382939c34f30f0543537e0668b8');
CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT);
INSERT INTO guests VALUES(1,'Ada',NULL);
INSERT INTO guests VALUES(2,'Grace',NULL);
INSERT INTO guests VALUES(3,'Edith',NULL);
COMMIT;
