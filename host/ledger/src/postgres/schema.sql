-- Tables and functions of the ledger. A statement that changes something is one call of one function, so it is one transaction
-- and one round trip. Errors of our own: SV001 fenced, SV002 unsynced, SV003 not next, SV004 not placed.
CREATE SCHEMA svc;

-- What the installation is: its id, the format of these tables.
CREATE TABLE svc.meta (key text PRIMARY KEY, value text NOT NULL);

-- A row a run. A run that is not live any more stays so; its row stays for a day, so that a late request cannot make it anew.
-- Places and commits may name a run whose row is gone: it does not live.
CREATE TABLE svc.nodes (
    run uuid PRIMARY KEY,
    name text NOT NULL,
    live bool NOT NULL DEFAULT true,
    beat bigint NOT NULL DEFAULT 0,
    -- Time for which its beat may stand still. The run answers for almost as long, so that all others must wait for that.
    suspect_ms bigint NOT NULL,
    peer_url text NOT NULL,
    peer_key bytea NOT NULL,
    version text NOT NULL,
    schema bigint NOT NULL,
    -- Whether the run ends by itself. If it is not live, it answers nothing any more.
    leaving bool NOT NULL DEFAULT false,
    -- Time, by the ledger's clock, at which the run was buried.
    buried_at timestamptz,
    -- Whether the run has begun to serve.
    serves bool NOT NULL DEFAULT false,
    -- Whether an operator has removed the node of a run that is dead.
    removed bool NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Who may write a database. The epoch is the beat of the run that the claim was.
CREATE TABLE svc.places (db text COLLATE "C" PRIMARY KEY, run uuid NOT NULL, epoch bigint NOT NULL);

-- Pages of a commit, compressed already, with the checksums of the states before and after it, and what those who follow the database
-- must forget.
CREATE TABLE svc.commits (
    db text COLLATE "C",
    commit bigint,
    run uuid NOT NULL,
    at bigint NOT NULL,
    before bigint NOT NULL,
    after bigint NOT NULL,
    body bytea NOT NULL,
    changes bytea NOT NULL,
    PRIMARY KEY (db, commit)
);
ALTER TABLE svc.commits ALTER body SET STORAGE EXTERNAL;

-- Copies of a database that are in the bucket.
CREATE TABLE svc.bases (
    db text COLLATE "C",
    commit bigint,
    state bigint NOT NULL,
    object text NOT NULL,
    bytes bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (db, commit)
);

-- Views of deployments, and the flushes that have added to them: one that is sent again adds nothing.
CREATE TABLE svc.visits (deployment text COLLATE "C" PRIMARY KEY, count bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE svc.flushes (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
CREATE INDEX flushes_at ON svc.flushes (at);

-- Refuses where a commit would be acknowledged before so many standbys have it. With 0 the server is durable by itself.
-- It is called before a change, and once more after it: a wait that has begun ends as if all were well when the setting is emptied.
CREATE FUNCTION svc.check_synced(standbys int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    names text := current_setting('synchronous_standby_names');
    level text := current_setting('synchronous_commit');
BEGIN
    IF level = 'off' OR standbys > 0 AND (
        level NOT IN ('on', 'remote_apply')
        OR names ~ '^\s*$'
        -- A list without a number waits for one.
        OR coalesce(substring(names FROM '(?i)^\s*(?:any\s|first\s)?\s*(\d+)\s*\(')::numeric, 1) < standbys
    ) THEN
        RAISE EXCEPTION 'synchronous_commit is %, synchronous_standby_names is "%"', level, names USING ERRCODE = 'SV002';
    END IF;
END $$;

-- Counts a beat of a run that lives. The row is a run's fence: whoever buries it waits for this transaction, or comes first.
-- What the transaction has read is durable, too, once it is acknowledged, because its own commit comes later.
CREATE FUNCTION svc.enter(me uuid, standbys int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    UPDATE svc.nodes SET beat = beat + 1 WHERE run = me AND live RETURNING beat INTO number;
    IF NOT FOUND THEN RAISE EXCEPTION 'fenced' USING ERRCODE = 'SV001'; END IF;
    PERFORM svc.check_synced(standbys);
    RETURN number;
END $$;

-- The same, for a run that must have the place of a database. The place cannot be taken away before the transaction ends.
CREATE FUNCTION svc.enter_place(me uuid, standbys int, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    PERFORM FROM svc.places p WHERE p.db = name AND p.run = me FOR UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'not placed' USING ERRCODE = 'SV004'; END IF;
END $$;

-- A run that is there stays as it is; writing its row again makes this wait for the standbys all the same. Each start of a node leaves
-- a row: here those go that nobody asks for any more.
CREATE FUNCTION svc.add_run(me uuid, standbys int, name text, suspect_ms bigint, peer_url text, peer_key bytea, version text, schema bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.check_synced(standbys);
    DELETE FROM svc.nodes n WHERE n.run IN (
        SELECT o.run FROM svc.nodes o
            WHERE NOT o.live AND o.buried_at < now() - interval '1 day' AND o.run <> me
            FOR UPDATE SKIP LOCKED
    );
    INSERT INTO svc.nodes AS n (run, name, suspect_ms, peer_url, peer_key, version, schema)
        VALUES (me, add_run.name, add_run.suspect_ms, add_run.peer_url, add_run.peer_key, add_run.version, add_run.schema)
        ON CONFLICT ON CONSTRAINT nodes_pkey DO UPDATE SET live = n.live;
END $$;

-- A node that ends again and again leaves many rows in a day: of the dead, only those are told that were buried last. Whoever claims
-- what a run had waits until it is silent, so it must be told however old it was.
CREATE FUNCTION svc.beat(me uuid, standbys int) RETURNS SETOF svc.nodes LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    RETURN QUERY SELECT * FROM (
        (SELECT * FROM svc.nodes n WHERE n.live)
        UNION ALL
        (SELECT * FROM svc.nodes n WHERE NOT n.live ORDER BY n.buried_at DESC NULLS LAST, n.run LIMIT 64)
    ) told ORDER BY told.run;
END $$;

-- Ends the connections of a run whose client has stopped in the middle of a request: the server waits for the client, which may be
-- paused for ever, and keeps all that the request has locked, above all the row of the run.
CREATE FUNCTION svc.end_stopped(stopped uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_terminate_backend(a.pid)
        FROM svc.nodes n
        JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = n.xmax
        JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE n.run = stopped AND a.usename = current_user AND a.wait_event_type = 'Client';
END $$;

-- Rows are locked in one order, so that two runs that bury each other do not wait for each other.
CREATE FUNCTION svc.bury(me uuid, standbys int, dead uuid, seen bigint) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.end_stopped(dead) FROM svc.nodes m, svc.nodes n
        WHERE m.run = me AND m.live AND n.run = dead AND n.live AND (seen IS NULL OR n.beat = seen);
    PERFORM FROM svc.nodes n WHERE n.run IN (me, dead) ORDER BY n.run FOR UPDATE;
    PERFORM FROM svc.nodes n WHERE n.run = me AND n.live;
    IF NOT FOUND THEN RAISE EXCEPTION 'fenced' USING ERRCODE = 'SV001'; END IF;
    PERFORM svc.check_synced(standbys);
    UPDATE svc.nodes n SET live = false, buried_at = now(), leaving = n.leaving OR me = dead
        WHERE n.run = dead AND n.live AND (seen IS NULL OR n.beat = seen);
    UPDATE svc.nodes n SET beat = n.beat + 1 WHERE n.run = me;
    RETURN NOT EXISTS (SELECT FROM svc.nodes n WHERE n.run = dead AND n.live);
END $$;

CREATE FUNCTION svc.note_serving(me uuid, standbys int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    UPDATE svc.nodes n SET serves = true WHERE n.run = me;
END $$;

-- The rows stay, so that a late request cannot make a run anew.
CREATE FUNCTION svc.remove_node(me uuid, standbys int, gone text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    IF EXISTS (SELECT FROM svc.nodes n WHERE n.name = gone AND n.live) THEN RETURN false; END IF;
    -- A run that has joined meanwhile stays.
    UPDATE svc.nodes n SET removed = true WHERE n.name = gone AND NOT n.live;
    RETURN true;
END $$;

-- All or none. The first commit of a database must continue the ledger's last one, or its newest base; each other one the commit
-- before it. A number that is taken leaves a row out, as one that continues nothing does.
CREATE FUNCTION svc.append(
    me uuid, standbys int,
    dbs text[], numbers bigint[], ats bigint[], befores bigint[], afters bigint[], bodies bytea[], noted bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    done bigint;
BEGIN
    PERFORM svc.enter(me, standbys);
    INSERT INTO svc.commits (db, commit, run, at, before, after, body, changes)
    SELECT t.db, t.commit, me, t.at, t.before, t.after, t.body, t.changes
    FROM (
        SELECT e.*,
            lag(e.commit) OVER in_order AS earlier,
            lag(e.after) OVER in_order AS earlier_after
        FROM unnest(dbs, numbers, ats, befores, afters, bodies, noted)
            AS e (db, commit, at, before, after, body, changes)
        WINDOW in_order AS (PARTITION BY e.db COLLATE "C" ORDER BY e.commit)
    ) t
    LEFT JOIN LATERAL (
        SELECT l.commit, l.after FROM (
            (SELECT c.commit, c.after FROM svc.commits c WHERE c.db = t.db ORDER BY c.commit DESC LIMIT 1)
            UNION ALL
            (SELECT b.commit, b.state FROM svc.bases b WHERE b.db = t.db ORDER BY b.commit DESC LIMIT 1)
        ) l
        WHERE t.earlier IS NULL ORDER BY l.commit DESC LIMIT 1
    ) last ON true
    WHERE t.commit = coalesce(t.earlier, last.commit) + 1
        AND t.before = CASE WHEN t.earlier IS NULL THEN last.after ELSE t.earlier_after END
    ORDER BY t.db COLLATE "C", t.commit
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done <> cardinality(dbs) THEN RAISE EXCEPTION 'not next' USING ERRCODE = 'SV003'; END IF;
END $$;

-- Looks for commits at these positions, in their order.
CREATE FUNCTION svc.find(me uuid, standbys int, dbs text[], numbers bigint[])
RETURNS TABLE (writer uuid, state bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    RETURN QUERY SELECT c.run, c.after
        FROM unnest(dbs, numbers) WITH ORDINALITY AS t (db, commit, place)
        LEFT JOIN svc.commits c ON c.db = t.db AND c.commit = t.commit
        ORDER BY t.place;
END $$;

-- Without a run, nothing is counted. Lengths are added up over so many rows at most, whatever there is.
CREATE FUNCTION svc.tail(me uuid, standbys int, name text, past bigint, max_bytes bigint)
RETURNS SETOF svc.commits LANGUAGE plpgsql AS $$
BEGIN
    IF me IS NOT NULL THEN PERFORM svc.enter(me, standbys); END IF;
    RETURN QUERY SELECT t.db, t.commit, t.run, t.at, t.before, t.after, t.body, t.changes
        FROM (
            SELECT c.*,
                row_number() OVER (ORDER BY c.commit) AS nth,
                sum(octet_length(c.body)) OVER (ORDER BY c.commit) AS total
            FROM (SELECT * FROM svc.commits o WHERE o.db = name AND o.commit > past ORDER BY o.commit LIMIT 4096) c
        ) t
        WHERE t.nth = 1 OR t.total <= max_bytes
        ORDER BY t.commit;
END $$;

CREATE FUNCTION svc.bases_of(me uuid, standbys int, name text) RETURNS SETOF svc.bases LANGUAGE plpgsql AS $$
BEGIN
    IF me IS NOT NULL THEN PERFORM svc.enter(me, standbys); END IF;
    RETURN QUERY SELECT * FROM svc.bases b WHERE b.db = name ORDER BY b.commit DESC;
END $$;

-- Returns the place as it is afterwards. The row is locked before its run is looked at: a run that has joined and claimed
-- meanwhile is seen. The number of a claim is the beat that it was.
CREATE FUNCTION svc.claim(me uuid, standbys int, name text) RETURNS svc.places LANGUAGE plpgsql AS $$
DECLARE
    number bigint := svc.enter(me, standbys);
    place svc.places;
BEGIN
    LOOP
        INSERT INTO svc.places AS p (db, run, epoch) VALUES (name, me, number) ON CONFLICT (db) DO NOTHING RETURNING * INTO place;
        IF FOUND THEN RETURN place; END IF;
        SELECT * INTO place FROM svc.places p WHERE p.db = name FOR UPDATE;
        -- It was released in between.
        CONTINUE WHEN NOT FOUND;
        IF place.run <> me AND EXISTS (SELECT FROM svc.nodes n WHERE n.run = place.run AND n.live) THEN RETURN place; END IF;
        UPDATE svc.places p SET run = me, epoch = number WHERE p.db = name RETURNING * INTO place;
        RETURN place;
    END LOOP;
END $$;

CREATE FUNCTION svc.release(me uuid, standbys int, name text, number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    DELETE FROM svc.places p WHERE p.db = name AND p.run = me AND p.epoch = number;
END $$;

CREATE FUNCTION svc.add_base(me uuid, standbys int, name text, number bigint, state bigint, object text, bytes bigint, at bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter_place(me, standbys, name);
    IF EXISTS (SELECT FROM svc.commits c WHERE c.db = name AND c.commit = add_base.number AND c.after <> add_base.state)
        OR EXISTS (SELECT FROM svc.bases b WHERE b.db = name AND b.commit = add_base.number AND b.state <> add_base.state)
        -- A base that no commit has led to would have the next one continue nothing.
        OR add_base.number > (SELECT max(c.commit) FROM svc.commits c WHERE c.db = name)
    THEN
        RAISE EXCEPTION 'not next' USING ERRCODE = 'SV003';
    END IF;
    INSERT INTO svc.bases VALUES (name, add_base.number, add_base.state, add_base.object, add_base.bytes, add_base.at)
        ON CONFLICT DO NOTHING;
END $$;

-- The base before the newest is kept with the commits after it: the object of the newest may turn out to be damaged.
CREATE FUNCTION svc.trim(me uuid, standbys int, name text, kept_bases bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
    done bigint;
BEGIN
    PERFORM svc.enter_place(me, standbys, name);
    SELECT min(n.commit) INTO kept
        FROM (SELECT b.commit FROM svc.bases b WHERE b.db = name ORDER BY b.commit DESC LIMIT kept_bases) n;
    DELETE FROM svc.commits c WHERE c.db = name AND c.commit < kept;
    GET DIAGNOSTICS done = ROW_COUNT;
    -- A base without the commits after it leads nowhere.
    DELETE FROM svc.bases b WHERE b.db = name AND b.commit < kept;
    RETURN done;
END $$;

CREATE FUNCTION svc.forget(me uuid, standbys int, name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    owner uuid;
BEGIN
    PERFORM svc.enter(me, standbys);
    DELETE FROM svc.places p WHERE p.db = name RETURNING p.run INTO owner;
    IF owner <> me THEN RAISE EXCEPTION 'not placed' USING ERRCODE = 'SV004'; END IF;
    IF owner = me THEN
        DELETE FROM svc.commits c WHERE c.db = name;
        DELETE FROM svc.bases b WHERE b.db = name;
    END IF;
END $$;

-- Returns the counts as they are afterwards. A flush stays known for a day, which is longer than anybody sends it again. Rows are
-- locked in one order, so that two nodes that add to the same ones do not wait for each other. A sum that does not fit stays the
-- largest number.
CREATE FUNCTION svc.add_visits(me uuid, standbys int, flush uuid, deployments text[], counts bigint[])
RETURNS SETOF svc.visits LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    INSERT INTO svc.flushes (id) VALUES (flush) ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN
        INSERT INTO svc.visits AS v (deployment, count)
            SELECT e.deployment, least(sum(e.count), 9223372036854775807)::bigint
            FROM unnest(deployments, counts) AS e (deployment, count)
            GROUP BY e.deployment
            ORDER BY e.deployment COLLATE "C"
            ON CONFLICT (deployment) DO UPDATE
            SET count = least(v.count::numeric + excluded.count::numeric, 9223372036854775807)::bigint;
        DELETE FROM svc.flushes f WHERE f.id IN (
            SELECT o.id FROM svc.flushes o WHERE o.at < now() - interval '1 day' ORDER BY o.at LIMIT 1000 FOR UPDATE SKIP LOCKED
        );
    END IF;
    RETURN QUERY SELECT v.deployment, v.count FROM svc.visits v WHERE v.deployment = ANY (deployments) ORDER BY v.deployment;
END $$;

CREATE FUNCTION svc.visits_after(me uuid, standbys int, past text, most bigint) RETURNS SETOF svc.visits LANGUAGE plpgsql AS $$
BEGIN
    IF me IS NOT NULL THEN PERFORM svc.enter(me, standbys); END IF;
    RETURN QUERY SELECT v.deployment, v.count FROM svc.visits v WHERE v.deployment > past ORDER BY v.deployment LIMIT most;
END $$;

CREATE FUNCTION svc.forget_visits(me uuid, standbys int, deployments text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM svc.enter(me, standbys);
    DELETE FROM svc.visits v WHERE v.deployment = ANY (deployments);
END $$;
