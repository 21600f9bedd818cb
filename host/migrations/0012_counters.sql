-- Views are counted in counters.db, which has them before this runs.

ALTER TABLE deployments DROP COLUMN visits;
DROP TABLE visit_flushes;
