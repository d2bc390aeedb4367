SET check_function_bodies = false;
CREATE TABLE ledger_windows (
    account text NOT NULL COLLATE pg_catalog."C",
    "window" text NOT NULL COLLATE pg_catalog."C",
    settled_nano bigint DEFAULT 0 NOT NULL,
    settled_tokens bigint DEFAULT 0 NOT NULL,
    settled_calls bigint DEFAULT 0 NOT NULL,
    held_nano bigint DEFAULT 0 NOT NULL,
    held_tokens bigint DEFAULT 0 NOT NULL,
    held_calls bigint DEFAULT 0 NOT NULL,
    overcharged_nano bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE FUNCTION ledger_add(changes ledger_windows[], old boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO ledger_windows AS w SELECT c.* FROM unnest(changes) c
        WHERE NOT old OR EXISTS (
            SELECT FROM ledger_windows x WHERE x.account = c.account AND x."window" = c."window")
        ON CONFLICT (account, "window") DO UPDATE SET
            settled_nano = w.settled_nano + excluded.settled_nano,
            settled_tokens = w.settled_tokens + excluded.settled_tokens,
            settled_calls = w.settled_calls + excluded.settled_calls,
            held_nano = w.held_nano + excluded.held_nano,
            held_tokens = w.held_tokens + excluded.held_tokens,
            held_calls = w.held_calls + excluded.held_calls,
            overcharged_nano = w.overcharged_nano + excluded.overcharged_nano;
END $$;
CREATE FUNCTION ledger_apply(operations jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    AS $_$
DECLARE
    reserving jsonb := jsonb_path_query_array(operations, '$[*] ? (@.type == "reserve")');
    settling jsonb := jsonb_path_query_array(operations, '$[*] ? (@.type == "settle")');
    together boolean := false;
    closed text[];
    operation jsonb;
    outcomes jsonb[] := '{}';
BEGIN
    PERFORM ledger_lock(operations);
    IF reserving <> '[]' AND NOT EXISTS (SELECT FROM ledger_holds WHERE id = ANY (
        ARRAY(SELECT o -> 'hold' ->> 'id' FROM jsonb_array_elements(reserving) o)))
    THEN
        together := ledger_reserve(reserving) ->> 'type' = 'ok';
    END IF;
    IF settling <> '[]' AND (together OR reserving = '[]') AND (
        SELECT count(DISTINCT o ->> 'id') = count(*) FROM jsonb_array_elements(settling) o)
    THEN
        closed := ledger_settle(settling);
    END IF;
    FOR operation IN SELECT * FROM jsonb_array_elements(operations) LOOP
        outcomes := array_append(outcomes, CASE
            WHEN together AND operation ->> 'type' = 'reserve' THEN '{"type": "ok"}'
            WHEN closed IS NULL OR operation ->> 'type' <> 'settle' THEN ledger_do(operation)
            WHEN operation ->> 'id' = ANY (closed) THEN '{"type": "ok"}'
            ELSE '{"type": "gone"}' END);
    END LOOP;
    RETURN to_jsonb(outcomes);
END $_$;
CREATE TABLE ledger_holds (
    id text NOT NULL COLLATE pg_catalog."C",
    accounts text[] NOT NULL,
    windows text[] NOT NULL,
    nano bigint NOT NULL,
    tokens bigint NOT NULL,
    calls bigint NOT NULL,
    made_at text NOT NULL COLLATE pg_catalog."C",
    lease_ends text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    note text NOT NULL,
    marked_at text COLLATE pg_catalog."C",
    CONSTRAINT ledger_holds_state_check CHECK ((state = ANY (ARRAY['reserved'::text, 'sent'::text, 'unknown'::text])))
);
CREATE FUNCTION ledger_change(hold ledger_holds, nano bigint, tokens bigint, calls bigint) RETURNS SETOF ledger_windows
    LANGUAGE plpgsql
    AS $$
DECLARE
    charged integer := (hold.state = 'unknown')::integer;
BEGIN
    RETURN QUERY SELECT a, s,
        nano - charged * hold.nano, tokens - charged * hold.tokens, calls - charged * hold.calls,
        (charged - 1) * hold.nano, (charged - 1) * hold.tokens, (charged - 1) * hold.calls,
        greatest(0, nano - hold.nano)
    FROM unnest(hold.accounts) a, unnest(hold.windows) s;
END $$;
CREATE FUNCTION ledger_claim(operation jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    taken ledger_keys;
BEGIN
    SELECT * INTO taken FROM ledger_keys WHERE key = operation ->> 'key';
    IF FOUND AND taken.token <> operation ->> 'token' AND (
        taken.status IS NOT NULL OR taken.lease_ends > operation ->> 'now'
        OR taken.fingerprint <> operation ->> 'fingerprint'
    ) THEN
        RETURN jsonb_build_object(
            'type', 'key', 'fingerprint', taken.fingerprint, 'lease_ends', taken.lease_ends,
            'status', taken.status, 'body', translate(encode(taken.body, 'base64'), E'\n', ''));
    END IF;
    INSERT INTO ledger_keys (key, fingerprint, token, claimed_at, lease_ends) VALUES (
        operation ->> 'key', operation ->> 'fingerprint', operation ->> 'token',
        operation ->> 'now', operation ->> 'lease_ends'
    ) ON CONFLICT (key) DO UPDATE SET token = excluded.token, claimed_at = excluded.claimed_at,
        lease_ends = excluded.lease_ends;
    RETURN '{"type": "ok"}';
END $$;
CREATE FUNCTION ledger_do(operation jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    rows jsonb;
BEGIN
    CASE operation ->> 'type'
    WHEN 'reserve' THEN
        -- It is there already where the connection broke after a first try.
        IF EXISTS (SELECT FROM ledger_holds WHERE id = operation -> 'hold' ->> 'id') THEN
            RETURN '{"type": "ok"}';
        END IF;
        RETURN ledger_reserve(jsonb_build_array(operation));
    WHEN 'settle' THEN
        RETURN CASE cardinality(ledger_settle(jsonb_build_array(operation)))
            WHEN 1 THEN '{"type": "ok"}' ELSE '{"type": "gone"}' END;
    WHEN 'mark' THEN
        RETURN ledger_mark(operation ->> 'id', operation ->> 'now');
    WHEN 'sweep' THEN
        RETURN ledger_sweep(operation ->> 'now');
    WHEN 'claim' THEN
        RETURN ledger_claim(operation);
    WHEN 'forget' THEN
        RETURN ledger_forget(operation ->> 'before', operation ->> 'now');
    WHEN 'sent' THEN
        UPDATE ledger_holds SET state = 'sent'
            WHERE id = operation ->> 'id' AND state <> 'unknown';
        RETURN CASE WHEN FOUND THEN '{"type": "ok"}' ELSE '{"type": "gone"}' END;
    WHEN 'extend' THEN
        UPDATE ledger_holds SET lease_ends = operation ->> 'lease_ends'
            WHERE id = operation ->> 'id' AND state <> 'unknown';
        RETURN CASE WHEN FOUND THEN '{"type": "ok"}' ELSE '{"type": "gone"}' END;
    WHEN 'finish' THEN
        UPDATE ledger_keys SET status = (operation -> 'status')::integer,
            body = decode(operation ->> 'body', 'base64')
            WHERE key = operation ->> 'key' AND status IS NULL;
        RETURN '{"type": "ok"}';
    WHEN 'abandon' THEN
        DELETE FROM ledger_keys WHERE key = operation ->> 'key' AND status IS NULL;
        RETURN '{"type": "ok"}';
    WHEN 'unknowns' THEN
        SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY made_at, id), '[]') INTO rows
            FROM ledger_holds h WHERE state = 'unknown';
        RETURN jsonb_build_object('type', 'holds', 'rows', rows);
    WHEN 'balances' THEN
        SELECT coalesce(jsonb_agg(to_jsonb(w)), '[]') INTO rows FROM ledger_windows w
            WHERE account = ANY (ARRAY(SELECT jsonb_array_elements_text(operation -> 'accounts')))
                AND "window" = ANY (ARRAY(SELECT jsonb_array_elements_text(operation -> 'windows')));
        RETURN jsonb_build_object('type', 'windows', 'rows', rows);
    END CASE;
END $$;
CREATE FUNCTION ledger_forget(before text, now text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    number integer;
BEGIN
    DELETE FROM ledger_keys WHERE claimed_at < before AND (status IS NOT NULL OR lease_ends <= now);
    GET DIAGNOSTICS number = ROW_COUNT;
    DELETE FROM ledger_windows WHERE held_nano = 0 AND held_tokens = 0 AND held_calls = 0 AND (
        (length("window") = 16 AND "window" < left(before, 16))
        OR (length("window") = 13 AND "window" < left(before, 13)));
    RETURN jsonb_build_object('type', 'count', 'number', number);
END $$;
CREATE FUNCTION ledger_lock(operations jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(lock) FROM (
        SELECT DISTINCT hashtextextended(name, 7079) AS lock FROM (
            SELECT jsonb_array_elements_text(o -> 'hold' -> 'accounts')
                FROM jsonb_array_elements(operations) o WHERE o ? 'hold'
            UNION ALL
            SELECT 'key ' || (o ->> 'key') FROM jsonb_array_elements(operations) o WHERE o ? 'key'
            UNION ALL
            SELECT unnest(accounts) FROM ledger_holds
                WHERE id = ANY (ARRAY(SELECT o ->> 'id' FROM jsonb_array_elements(operations) o))
            UNION ALL
            SELECT unnest(h.accounts) FROM jsonb_array_elements(operations) o, ledger_holds h
                WHERE o ->> 'type' = 'sweep'
                    AND h.state <> 'unknown' AND h.lease_ends <= o ->> 'now'
        ) AS touched (name) ORDER BY lock
    ) AS locks;
END $$;
CREATE FUNCTION ledger_mark(asked_id text, now text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    hold ledger_holds;
BEGIN
    SELECT * INTO hold FROM ledger_holds WHERE id = asked_id;
    IF NOT FOUND THEN
        RETURN '{"type": "gone"}';
    END IF;
    IF hold.state <> 'unknown' THEN
        PERFORM ledger_add(ARRAY(
            SELECT c FROM ledger_change(hold, hold.nano, hold.tokens, hold.calls) c), true);
        UPDATE ledger_holds SET state = 'unknown', marked_at = now WHERE id = asked_id;
    END IF;
    RETURN '{"type": "ok"}';
END $$;
CREATE FUNCTION ledger_reserve(operations jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    holds ledger_holds[] := ARRAY(
        SELECT jsonb_populate_record(NULL::ledger_holds, o -> 'hold')
        FROM jsonb_array_elements(operations) o);
    changes ledger_windows[] := ARRAY(
        SELECT ROW(a, s, 0, 0, 0, sum(h.nano), sum(h.tokens), sum(h.calls), 0)::ledger_windows
        FROM unnest(holds) h, unnest(h.accounts) a, unnest(h.windows) s GROUP BY a, s);
    broken jsonb;
BEGIN
    SELECT jsonb_agg(jsonb_build_array(c.number - 1, c.used) ORDER BY c.number) INTO broken FROM (
        SELECT asked.number, most, CASE unit
            WHEN 'usd' THEN n.held_nano
            WHEN 'tokens' THEN n.held_tokens
            ELSE n.held_calls END AS needed, coalesce(CASE unit
            WHEN 'usd' THEN w.settled_nano + w.held_nano
            WHEN 'tokens' THEN w.settled_tokens + w.held_tokens
            ELSE w.settled_calls + w.held_calls END, 0) AS used
        FROM (
            SELECT row_number() OVER (ORDER BY o.number, c.number) AS number,
                c.value ->> 'account' AS account, c.value ->> 'window' AS "window",
                c.value ->> 'unit' AS unit, (c.value -> 'most')::bigint AS most
            FROM jsonb_array_elements(operations) WITH ORDINALITY o (value, number),
                jsonb_array_elements(o.value -> 'checks') WITH ORDINALITY c (value, number)
        ) AS asked
        JOIN unnest(changes) n ON n.account = asked.account AND n."window" = asked."window"
        LEFT JOIN ledger_windows w ON w.account = asked.account AND w."window" = asked."window"
    ) AS c WHERE c.used + c.needed > c.most;
    IF broken IS NOT NULL THEN
        RETURN jsonb_build_object('type', 'broken', 'used', broken);
    END IF;
    INSERT INTO ledger_holds SELECT h.* FROM unnest(holds) h;
    PERFORM ledger_add(changes, false);
    RETURN '{"type": "ok"}';
END $$;
CREATE FUNCTION ledger_settle(operations jsonb) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    changes ledger_windows[];
    closed text[];
BEGIN
    WITH gone AS (
        DELETE FROM ledger_holds h
        USING jsonb_to_recordset(operations)
            AS o (id text, nano bigint, tokens bigint, calls bigint, marked boolean)
        WHERE h.id = o.id AND (h.state = 'unknown' OR NOT o.marked)
        RETURNING h AS hold, o.nano, o.tokens, o.calls
    )
    SELECT ARRAY(SELECT (hold).id FROM gone),
        ARRAY(SELECT c FROM gone, ledger_change(hold, gone.nano, gone.tokens, gone.calls) c)
        INTO closed, changes;
    PERFORM ledger_add(ledger_sum(changes), true);
    RETURN closed;
END $$;
CREATE FUNCTION ledger_sum(changes ledger_windows[]) RETURNS ledger_windows[]
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN ARRAY(SELECT ROW(account, "window", sum(settled_nano), sum(settled_tokens),
        sum(settled_calls), sum(held_nano), sum(held_tokens), sum(held_calls),
        sum(overcharged_nano))::ledger_windows
        FROM unnest(changes) GROUP BY account, "window");
END $$;
CREATE FUNCTION ledger_sweep(now text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $$
DECLARE
    never jsonb := (SELECT coalesce(jsonb_agg(jsonb_build_object(
        'id', id, 'nano', 0, 'tokens', 0, 'calls', 0, 'marked', false)), '[]')
        FROM ledger_holds WHERE state = 'reserved' AND lease_ends <= now);
    sent text[] := ARRAY(SELECT id FROM ledger_holds WHERE state = 'sent' AND lease_ends <= now);
    one text;
BEGIN
    FOREACH one IN ARRAY sent LOOP
        PERFORM ledger_mark(one, now);
    END LOOP;
    RETURN jsonb_build_object('type', 'closed', 'charged', cardinality(sent),
        'returned', cardinality(ledger_settle(never)));
END $$;
CREATE TABLE alarms (
    id text NOT NULL,
    policy text NOT NULL,
    mode text NOT NULL,
    certificate text NOT NULL,
    signal text NOT NULL,
    at_us bigint NOT NULL,
    says text NOT NULL,
    evidence double precision NOT NULL,
    closed_at_us bigint,
    closed_by text
);
CREATE TABLE audits (
    id text NOT NULL,
    at_us bigint NOT NULL,
    policy text NOT NULL,
    mode text NOT NULL,
    certificate text NOT NULL,
    purpose text NOT NULL,
    probability double precision NOT NULL,
    graded_by text NOT NULL,
    whole bigint NOT NULL,
    state text NOT NULL,
    owner text NOT NULL,
    until_us bigint NOT NULL,
    due_us bigint NOT NULL,
    tries bigint NOT NULL,
    value double precision,
    writer text NOT NULL
);
CREATE TABLE deployments (
    policy text NOT NULL,
    mode text NOT NULL,
    number bigint NOT NULL,
    at_us bigint NOT NULL,
    certificate text,
    says text NOT NULL,
    how text NOT NULL,
    who text
);
CREATE TABLE farthing_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE feedback (
    id text NOT NULL,
    at_us bigint NOT NULL,
    key_id text,
    grade double precision,
    gold text,
    comment text,
    revision bigint NOT NULL,
    writer text NOT NULL
);
CREATE TABLE gateway_keys (
    id text NOT NULL,
    digest text NOT NULL,
    name text NOT NULL,
    team text,
    scopes text NOT NULL,
    limits text NOT NULL,
    models text NOT NULL,
    made_us bigint NOT NULL,
    revoked_us bigint,
    expires_us bigint
);
CREATE TABLE ledger_keys (
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL,
    token text NOT NULL,
    claimed_at text NOT NULL COLLATE pg_catalog."C",
    lease_ends text NOT NULL COLLATE pg_catalog."C",
    status integer,
    body bytea
);
CREATE TABLE ledger_schema (
    version integer NOT NULL
);
CREATE TABLE sessions (
    digest text NOT NULL,
    key_id text NOT NULL,
    made_us bigint NOT NULL,
    used_us bigint NOT NULL
);
CREATE TABLE traffic_failures (
    id text NOT NULL,
    at_us bigint NOT NULL,
    key_id text,
    model text,
    status bigint NOT NULL,
    code text NOT NULL,
    said text NOT NULL,
    tries text NOT NULL,
    cost_nano bigint NOT NULL,
    latency_s double precision NOT NULL
);
CREATE TABLE traffic_hours (
    hour bigint NOT NULL,
    policy text NOT NULL,
    model text NOT NULL,
    promise text NOT NULL,
    requests bigint NOT NULL,
    cost_nano bigint NOT NULL,
    later_nano bigint NOT NULL,
    saved_nano bigint NOT NULL,
    compared bigint NOT NULL,
    compared_nano bigint NOT NULL
);
CREATE TABLE traffic_hours_calls (
    hour bigint NOT NULL,
    policy text NOT NULL,
    model text NOT NULL,
    later integer NOT NULL,
    calls bigint NOT NULL,
    failed bigint NOT NULL,
    cost_nano bigint NOT NULL
);
CREATE TABLE traffic_hours_failures (
    hour bigint NOT NULL,
    model text NOT NULL,
    status bigint NOT NULL,
    code text NOT NULL,
    number bigint NOT NULL,
    cost_nano bigint NOT NULL
);
CREATE TABLE traffic_hours_latency (
    hour bigint NOT NULL,
    policy text NOT NULL,
    kind text NOT NULL,
    model text NOT NULL,
    bucket integer NOT NULL,
    number bigint NOT NULL
);
CREATE TABLE traffic_losses (
    what text NOT NULL,
    number bigint NOT NULL
);
CREATE TABLE traffic_outside (
    policy text NOT NULL,
    reason text NOT NULL,
    number bigint NOT NULL
);
CREATE TABLE traffic_requests (
    id text NOT NULL,
    at_us bigint NOT NULL,
    key_id text,
    conversation text NOT NULL,
    policy text,
    model text NOT NULL,
    messages text,
    trace text NOT NULL,
    later text DEFAULT ''::text NOT NULL,
    promise text NOT NULL,
    cost_nano bigint NOT NULL,
    later_nano bigint DEFAULT 0 NOT NULL,
    saved_nano bigint,
    latency_s double precision NOT NULL,
    system text,
    certificate text,
    mode text,
    answered_by text,
    "group" text,
    audit double precision,
    audited bigint NOT NULL,
    decided text
);
CREATE TABLE traffic_turn (
    one integer NOT NULL
);
CREATE TABLE watch_events (
    id text NOT NULL,
    what text NOT NULL,
    policy text NOT NULL,
    mode text NOT NULL,
    certificate text NOT NULL,
    at_us bigint NOT NULL,
    body text NOT NULL
);
CREATE TABLE watch_states (
    policy text NOT NULL,
    mode text NOT NULL,
    certificate text NOT NULL,
    part text NOT NULL,
    at_us bigint NOT NULL,
    version bigint NOT NULL,
    writer text NOT NULL,
    state text NOT NULL
);
INSERT INTO audits VALUES ('ef1ae2bf35bd4eb58faf6975af64e8d0', 1795823919105066, 'letters', 'default', '18aac4f96a14a28d', 'audit', 1, 'reference', 1, 'done', '06f2c602af1f4c3598bbda210078d271', 1795823979105066, 1795823919105066, 0, 1, '0522e56d01d546878963b213bee5e9fa grade');
INSERT INTO audits VALUES ('753fda7af95b4e4baf75fd431005d00a', 1795823919197726, 'letters', 'default', '18aac4f96a14a28d', 'audit', 1, 'reference', 1, 'done', '06f2c602af1f4c3598bbda210078d271', 1795823979197726, 1795823919197726, 0, 1, '2b1c850bfb3541e6abe04c2f6c7d30a8 grade');
INSERT INTO audits VALUES ('794611b670034ae6842ccb5408f12a4d', 1795823919010084, 'letters', 'default', '18aac4f96a14a28d', 'audit', 1, 'reference', 1, 'done', '06f2c602af1f4c3598bbda210078d271', 1795823979010084, 1795823919010084, 0, 1, '967e5c4d808948629d2c88c10f615c7a grade');
INSERT INTO audits VALUES ('1e4bd9e5c23f4741a03874c6e58583ea', 1795823919289898, 'letters', 'default', '18aac4f96a14a28d', 'audit', 1, 'reference', 1, 'done', '06f2c602af1f4c3598bbda210078d271', 1795823979289898, 1795823919289898, 0, 1, 'd15c1f6cbc8148d0afea45a183a7c17a grade');
INSERT INTO deployments VALUES ('letters', 'default', 1, 1795823918657199, '18aac4f96a14a28d', 'With confidence 0.9 in the draw of 900 questions, the answer of the policy is the one that large would have given, with probability at least 0.95. It was one of 3 candidates, proved at 0.6 of what may fail.', 'loaded', NULL);
INSERT INTO farthing_version VALUES ('0002');
INSERT INTO feedback VALUES ('8e7d7a70d66c4875b45c561c2f9e1441', 1795823919664417, '3cd48c22', 1, NULL, 'good', 1, '3b578ed8dfac4f0595df908d3cebd38a');
INSERT INTO gateway_keys VALUES ('3cd48c22', '02ecfe1215e5972a1c90c7fedb5d91f19a12d0c528a5517fb5ea3d17f3a7d998', 'web', 'site', '["admin","call"]', '[{"unit":"usd","period":"day","most":5000000000}]', '[]', 1795823918258333, NULL, NULL);
INSERT INTO gateway_keys VALUES ('510a256d', '3a6b257abb6f8ecc8ce28dace39dfdacac8d449e52d5747a9c08a802f470dbc8', 'gone', NULL, '["call"]', '[]', '[]', 1795823918277469, 1795823918292842, NULL);
INSERT INTO ledger_holds VALUES ('e872e0b5cd55e7b3fede57f0d8de1542', '{all,key:web,model:large}', '{2026-11-27T23:58,2026-11-27T23,2026-11-27,2026-11,total}', 1000, 10, 1, '2026-11-27T23:58:40.507679Z', '2126-11-03T23:58:40.507679Z', 'reserved', 'large', NULL);
INSERT INTO ledger_holds VALUES ('7fcb8c5898b617bd90763a370be496c3', '{all,key:web,model:large}', '{2026-11-27T23:58,2026-11-27T23,2026-11-27,2026-11,total}', 2000, 20, 1, '2026-11-27T23:58:40.557422Z', '2026-11-27T23:58:40.558422Z', 'reserved', 'large', NULL);
INSERT INTO ledger_holds VALUES ('a0a86a8efedddaf4fe6b69ecff0c91f4', '{all,key:web,model:large}', '{2026-11-27T23:58,2026-11-27T23,2026-11-27,2026-11,total}', 4000, 40, 1, '2026-11-27T23:58:40.572462Z', '2026-11-27T23:58:40.573462Z', 'sent', 'large', NULL);
INSERT INTO ledger_keys VALUES ('3cd48c22:200651a8b2d5912f692db89468a7d47d86a3ed6844f48f1b15f2be1d9c9a7e5e', '3b696e96128cec3e84b5114e95a439d55202ab2a0d887bdeeeb8949cb71316be', '5506cf34a2f9c88c0d58e51ebd3c42d0', '2026-11-27T23:58:39.308377Z', '2026-11-28T00:13:39.308377Z', 200, '\x7b226964223a202263686174636d706c2d31222c20226f626a656374223a2022636861742e636f6d706c6574696f6e222c202263726561746564223a20302c20226d6f64656c223a20226c617267652d32303236222c202263686f69636573223a205b7b22696e646578223a20302c20226d657373616765223a207b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202254686520616e7377657220697320412e227d2c202266696e6973685f726561736f6e223a202273746f70227d5d2c20227573616765223a207b2270726f6d70745f746f6b656e73223a20342c2022636f6d706c6574696f6e5f746f6b656e73223a20342c2022746f74616c5f746f6b656e73223a20387d2c226661727468696e67223a7b2274726163655f6964223a223865376437613730643636633438373562343563353631633266396531343431222c22616e7377657265645f6279223a226c61726765222c22636f73745f757364223a302e30303031322c22636f73745f6e616e6f223a3132303030302c22636f73745f657374696d61746564223a66616c73652c2273617665645f757364223a302e302c226c6174656e63795f73223a302e303831312c2263616c6c73223a5b7b226d6f64656c223a226c61726765222c22636f73745f757364223a302e30303031322c226c6174656e63795f73223a302e303331377d5d2c2270726f6d697365223a226e6f6e65222c2273617973223a224e6f7468696e672069732070726f6d697365643a2061206d6f64656c207761732061736b65642c2077686963682070726f6d69736573206e6f7468696e672e222c226365727469666963617465223a6e756c6c2c2270726f76656e616e6365223a6e756c6c2c226d6f6465223a6e756c6c2c226d61785f746f6b656e73223a6e756c6c2c2264726f70706564223a5b5d2c226f757473696465223a6e756c6c2c22736574223a5b5d7d7d');
INSERT INTO ledger_schema VALUES (1);
INSERT INTO ledger_windows VALUES ('all', '2026-11-27T23', 736000, 88, 9, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('all', 'total', 736000, 88, 9, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('all', '2026-11-27T23:58', 736000, 88, 9, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('key:web', '2026-11-27T23', 176000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('key:web', 'total', 176000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('all', '2026-11-27', 736000, 88, 9, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('key:web', '2026-11', 176000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('key:web', '2026-11-27', 176000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('key:web', '2026-11-27T23:58', 176000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('all', '2026-11', 736000, 88, 9, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('model:small', '2026-11', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('team:site', '2026-11-27', 176000, 48, 5, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('model:small', '2026-11-27T23:58', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:letters', '2026-11', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:letters', '2026-11-27', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('team:site', '2026-11', 176000, 48, 5, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('model:small', 'total', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('model:small', '2026-11-27', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('team:site', '2026-11-27T23:58', 176000, 48, 5, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:letters', '2026-11-27T23', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:letters', '2026-11-27T23:58', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('team:site', 'total', 176000, 48, 5, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('team:site', '2026-11-27T23', 176000, 48, 5, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:letters', 'total', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('model:small', '2026-11-27T23', 56000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('model:large', '2026-11-27', 680000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('model:large', '2026-11', 680000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('model:large', '2026-11-27T23', 680000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('model:large', 'total', 680000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('model:large', '2026-11-27T23:58', 680000, 48, 5, 7000, 70, 3, 0);
INSERT INTO ledger_windows VALUES ('policy:audit', '2026-11', 560000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:audit', '2026-11-27', 560000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:audit', 'total', 560000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:audit', '2026-11-27T23:58', 560000, 40, 4, 0, 0, 0, 0);
INSERT INTO ledger_windows VALUES ('policy:audit', '2026-11-27T23', 560000, 40, 4, 0, 0, 0, 0);
INSERT INTO sessions VALUES ('a4c2a667ea89005de73455d10cfe5906c0cd58cb178129b0392c679a3eb1881f', '3cd48c22', 1795823919735311, 1795823919735311);
INSERT INTO traffic_failures VALUES ('86078a37c3f043f2bab9eaad24b9cb66', 1795823919455547, '3cd48c22', NULL, 404, 'model_not_found', 'there is no model ''none'' here, but: small, large, farthing/letters', '[]', 0, 0.002233437999166199);
INSERT INTO traffic_hours VALUES (498839, '', 'large', 'none', 1, 120000, 0, 0, 1, 120000);
INSERT INTO traffic_hours VALUES (498839, 'letters', 'farthing/letters', 'agreement', 4, 56000, 560000, 504000, 4, 56000);
INSERT INTO traffic_hours_calls VALUES (498839, 'letters', 'small', 0, 4, 0, 56000);
INSERT INTO traffic_hours_calls VALUES (498839, '', 'large', 0, 1, 0, 120000);
INSERT INTO traffic_hours_calls VALUES (498839, 'letters', 'large', 1, 4, 0, 560000);
INSERT INTO traffic_hours_failures VALUES (498839, '', 404, 'model_not_found', 1, 0);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'reply', 'farthing/letters', 32, 1);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'call', 'small', 22, 1);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'call', 'small', 14, 1);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'call', 'small', 18, 1);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'reply', 'farthing/letters', 31, 3);
INSERT INTO traffic_hours_latency VALUES (498839, 'letters', 'call', 'small', 15, 1);
INSERT INTO traffic_hours_latency VALUES (498839, '', 'reply', 'large', 32, 1);
INSERT INTO traffic_hours_latency VALUES (498839, '', 'call', 'large', 25, 1);
INSERT INTO traffic_requests VALUES ('1e4bd9e5c23f4741a03874c6e58583ea', 1795823919289898, '3cd48c22', '47001f6836c39b4b', 'letters', 'farthing/letters', '[{"role":"system","content":"Say A or B."},{"role":"user","content":"number 3"}]', '{"id":"1e4bd9e5c23f4741a03874c6e58583ea","question":"number 3","calls":[{"round":1,"role":"small","model":"small-2026","answer":"The answer is B.","text":"The answer is B.","input_tokens":6,"output_tokens":4,"latency_s":0.007685381000555935,"cost_usd":0.000014,"largest_cost_usd":0.000199}],"task":"multiple_choice","group":"letters","independent":true,"truncated":true}', '{"round":1,"role":"large","model":"large-2026","answer":"The answer is B.","text":"The answer is B.","input_tokens":6,"output_tokens":4,"latency_s":0.001923707999594626,"cost_usd":0.00014,"largest_cost_usd":0.00199}
', 'agreement', 14000, 140000, 126000, 0.07431158399958804, '{"large":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"large-2026","price":"$10 in and $20 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}},"small":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"small-2026","price":"$1 in and $2 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}}}', '18aac4f96a14a28d', 'default', 'small', 'vip', 1, 1, '{"kind":"agreement","graded_by":"reference","promised":0.95,"reference":"large","pooled":true,"pool":["small","large"],"returned":["The answer is B."],"agreement":1.0,"confidence":1.0,"ended_by":"policy","explore":0.0,"explored":false}');
INSERT INTO traffic_requests VALUES ('8e7d7a70d66c4875b45c561c2f9e1441', 1795823919389813, '3cd48c22', '8ef4a732657ae32f', NULL, 'large', '[{"role":"system","content":"Another prompt."},{"role":"user","content":"number 8"}]', '{"id":"8e7d7a70d66c4875b45c561c2f9e1441","question":"number 8","calls":[{"round":1,"role":"large","model":"large-2026","answer":"The answer is A.","text":"The answer is A.","input_tokens":4,"output_tokens":4,"latency_s":0.03144056500059378,"cost_usd":0.00012}],"independent":true}', '', 'none', 120000, 0, 0, 0.08109449299990956, NULL, NULL, NULL, 'large', NULL, NULL, 0, NULL);
INSERT INTO traffic_requests VALUES ('ef1ae2bf35bd4eb58faf6975af64e8d0', 1795823919105066, '3cd48c22', 'd1067ada4ba812e9', 'letters', 'farthing/letters', '[{"role":"system","content":"Say A or B."},{"role":"user","content":"number 1"}]', '{"id":"ef1ae2bf35bd4eb58faf6975af64e8d0","question":"number 1","calls":[{"round":1,"role":"small","model":"small-2026","answer":"The answer is B.","text":"The answer is B.","input_tokens":6,"output_tokens":4,"latency_s":0.006789511000533821,"cost_usd":0.000014,"largest_cost_usd":0.000199}],"task":"multiple_choice","group":"letters","independent":true,"truncated":true}', '{"round":1,"role":"large","model":"large-2026","answer":"The answer is B.","text":"The answer is B.","input_tokens":6,"output_tokens":4,"latency_s":0.04545510399839259,"cost_usd":0.00014,"largest_cost_usd":0.00199}
', 'agreement', 14000, 140000, 126000, 0.07109670599857054, '{"large":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"large-2026","price":"$10 in and $20 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}},"small":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"small-2026","price":"$1 in and $2 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}}}', '18aac4f96a14a28d', 'default', 'small', 'vip', 1, 1, '{"kind":"agreement","graded_by":"reference","promised":0.95,"reference":"large","pooled":true,"pool":["small","large"],"returned":["The answer is B."],"agreement":1.0,"confidence":1.0,"ended_by":"policy","explore":0.0,"explored":false}');
INSERT INTO traffic_requests VALUES ('753fda7af95b4e4baf75fd431005d00a', 1795823919197726, '3cd48c22', 'ab78cf2725054240', 'letters', 'farthing/letters', '[{"role":"system","content":"Say A or B."},{"role":"user","content":"number 2"}]', '{"id":"753fda7af95b4e4baf75fd431005d00a","question":"number 2","calls":[{"round":1,"role":"small","model":"small-2026","answer":"The answer is A.","text":"The answer is A.","input_tokens":6,"output_tokens":4,"latency_s":0.011673237999275443,"cost_usd":0.000014,"largest_cost_usd":0.000199}],"task":"multiple_choice","group":"letters","independent":true,"truncated":true}', '{"round":1,"role":"large","model":"large-2026","answer":"The answer is A.","text":"The answer is A.","input_tokens":6,"output_tokens":4,"latency_s":0.037418324000100256,"cost_usd":0.00014,"largest_cost_usd":0.00199}
', 'agreement', 14000, 140000, 126000, 0.06734750499890652, '{"large":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"large-2026","price":"$10 in and $20 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}},"small":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"small-2026","price":"$1 in and $2 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}}}', '18aac4f96a14a28d', 'default', 'small', NULL, 1, 1, '{"kind":"agreement","graded_by":"reference","promised":0.95,"reference":"large","pooled":true,"pool":["small","large"],"returned":["The answer is A."],"agreement":1.0,"confidence":1.0,"ended_by":"policy","explore":0.0,"explored":false}');
INSERT INTO traffic_requests VALUES ('794611b670034ae6842ccb5408f12a4d', 1795823919010084, '3cd48c22', 'a979c128d67437b6', 'letters', 'farthing/letters', '[{"role":"system","content":"Say A or B."},{"role":"user","content":"number 0"}]', '{"id":"794611b670034ae6842ccb5408f12a4d","question":"number 0","calls":[{"round":1,"role":"small","model":"small-2026","answer":"The answer is A.","text":"The answer is A.","input_tokens":6,"output_tokens":4,"latency_s":0.021216092998656677,"cost_usd":0.000014,"largest_cost_usd":0.000199}],"task":"multiple_choice","group":"letters","independent":true,"truncated":true}', '{"round":1,"role":"large","model":"large-2026","answer":"The answer is A.","text":"The answer is A.","input_tokens":6,"output_tokens":4,"latency_s":0.009095164999962435,"cost_usd":0.00014,"largest_cost_usd":0.00199}
', 'agreement', 14000, 140000, 126000, 0.08730631100115716, '{"large":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"large-2026","price":"$10 in and $20 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}},"small":{"agent":{"max_tokens":50,"temperature":1.0},"kind":"ChatAgent","model":"small-2026","price":"$1 in and $2 out per million tokens","prompts":{"system":"sha256:bde42518cb63b615"},"sent":{"around":"sha256:d59ca6623267a173","longest":null,"parameters":{"max_tokens":50,"temperature":1.0},"reads":"an answer line","system":["sha256:bde42518cb63b615"]},"settings":{"context_window":null,"extra":"sha256:44136fa355b3678a","limit_name":"sha256:495cfb85b6ad85ad","omit":"sha256:4f53cda18c2baa0c","search":null}}}', '18aac4f96a14a28d', 'default', 'small', NULL, 1, 1, '{"kind":"agreement","graded_by":"reference","promised":0.95,"reference":"large","pooled":true,"pool":["small","large"],"returned":["The answer is A."],"agreement":1.0,"confidence":1.0,"ended_by":"policy","explore":0.0,"explored":false}');
INSERT INTO traffic_turn VALUES (1);
INSERT INTO watch_states VALUES ('letters', 'default', '18aac4f96a14a28d', 'vip', 1795823919948367, 0, '494cd2c68b6c4ba8a3d98972656b64df', '{"mean":{"delta":0.05,"n":2,"low":0,"above":[1.3862815096992507,1.3862429509581795,1.3861786714574278,1.3860886487922635,1.3859728515834953,1.385831239464908,1.385663763067103,1.385470363997749,1.3852509748182391,1.3850055190167523,1.3847339109777232,1.3844360559477114,1.3841118499976761,1.3837611799816545,1.383383923491834,1.3829799488100327,1.3825491148555746,1.3820912711295654,1.3816062576555685,1.3810939049166797,1.3805540337890054,1.3799864554715435,1.379390971412469,1.3787673732318306,1.37811544264066,1.377434951356503,1.3767256610153715,1.3759873230801367,1.3752196787453608,1.3744224588385872,1.3735953837180999,1.372738163167162,1.371850496284765,1.3709320713728887,1.3699825658203157,1.3690016459830083,1.3679889670610894,1.3669441729724485,1.3658668962230216,1.3647567577737698,1.3636133669044124,1.3624363210739578,1.3612252057780854,1.3599795944034394,1.3586990480788956,1.357383115523875,1.356031332893776,1.3546432236226154,1.3532182982629597,1.351756054323255,1.3502559761026522,1.3487175345234528,1.3471401869612887,1.3455233770731803,1.343866534623613,1.3421690753087854,1.3404304005792018,1.3386498974607868,1.3368269383747116,1.3349608809561424,1.3330510678721321,1.3310968266388867,1.3290974694386657,1.3270522929365804,1.3249605780975813,1.3228215900039362,1.3206345776735318,1.31839877387934,1.3161133949704182,1.313777640694839,1.3113906940249591,1.308951720985475,1.306459870484726,1.3039142741497427,1.301314046165567,1.2986582831193907,1.2959460638501046,1.2931764493038738,1.2903484823963896,1.2878418272086347,1.2854640823323606,1.2830476129255044,1.2805920276812683,1.2780969275463048,1.275561905640775,1.272986547180633,1.2703704294024136,1.2677131214908097,1.2650141845093419,1.2622731713344402,1.2594896265932838,1.2566630866057498,1.2537930793308485,1.2508791243180502,1.2479207326639137,1.24491740697446,1.241868641333757,1.2387739212791993,1.235632723783993,1.2324445172473868,1.2292087614932066,1.2259249077772878,1.222592398804418,1.2192106687554416,1.2157791433251965,1.2122972397719942,1.2087643669793766,1.2051799255309197,1.2015433077988897,1.1978538980475784,1.1941110725521988,1.1903141997342361,1.186462640314197,1.1825557474827355,1.1785928670911594,1.1745733378623777,1.170496491623358,1.1663616535602341,1.1621681424972055,1.1579152712004395,1.1536023467081935,1.1492286706884431,1.1447935398252997,1.1402962462355741,1.1357360779168464,1.1311123192284496,1.1264242514068032,1.1216711531165569,1.1168523010390363,1.111966970499506,1.107014436134784,1.101993972602759,1.096904855335387,1.0917463613367384,1.0865177700276836,1.0812183641388056,1.0758474306531225,1.0704042618001877,1.0648881561031271,1.0592984194801494,1.0536343664020202,1.0478953211069695,1.0420806188744425,1.036189607359041,1.03022164798595,1.024176117409045,1.0180524090327943,1.0118499345989682,1.0055681258390323,0.9992064361929947,0.9927643425953041,0.9862413473282506,0.9796369799431288,0.972950799249235,0.9661823953705415,0.9593313918696744,0.9523974479385457,0.9453802606547355,0.9382795673024078,0.9310951477562408,0.9238268269265015,0.9164744772630415,0.9090380213156065,0.901517434347438,0.8939127469987316,0.8862240479960477,0.8784514869033178,0.870595276909568,0.8626556976479969,0.8546330980404843,0.8465278991610634,0.8383405971113216,0.8300717659000967,0.8217220603192451,0.8140087982078159,0.8097027927286686,0.8053809122748901,0.8010433401352166,0.7966902616191966,0.7923218640712799,0.7879383368848276,0.7835398715160455,0.7791266614978283,0.7746989024535116,0.7702567921105233,0.7658005303139286,0.7613303190398608,0.7568463624088326,0.752348866698917,0.7478380403587954,0.7433140940206602,0.7387772405129692,0.7342276948730388,0.7296656743594723,0.7250913984644118,0.720505088925609,0.7159069697383009,0.7112972671668878,0.7066762097564003,0.7020440283437481,0.6974009560687406,0.6927472283848708,0.6880830830698519,0.6834087602358984,0.6787245023397391,0.6740305541923546,0.6693271629684283,0.6646145782154986,0.6598930518628057,0.655162838229816,0.6504241940344218,0.6456773784007956,0.6409226528668959,0.636160281391607,0.6313905303615049,0.6266136685972375,0.6218299673595036,0.6170397003546217,0.6122431437396778,0.6074405761272345,0.602632278589593,0.5978185346625959,0.5929996303489539,0.5881758541210856,0.5833474969234607,0.5785148521744248,0.5736782157675024,0.5688378860721559,0.5639941639339927,0.5591473526744037,0.5542977580896212,0.5494456884491785,0.5445914544937622,0.5397353694324392,0.534877748939245,0.5300189111491195,0.5251591766531752,0.5202988684932837,0.5154383121559643,0.5105778355655628,0.505717769076703,0.5008584454659984,0.4960001999230068,0.49114337004041453,0.4862882958034363,0.4814353195784135,0.4765847861005976,0.47173704246110426,0.46689243809302017,0.46205132475665367,0.4572140565239078,0.4523809897617662,0.4475524831148743,0.44272889748720207,0.4379105960227756,0.4330979440854612,0.4282913092377859,0.4234910612187875,0.41869757192087154,0.41391121536566755,0.4091323676788691,0.40436140706404344,0.399598713775399,0.3948446700894992,0.3900996602759038,0.3853640705667351,0.380638289125148,0.37592270601269795,0.3712177131555924,0.3665237043098158,0.36184107502511775,0.3567776970881763,0.3513400604180073,0.34594337183722557,0.34058759048555276,0.3352726786000684,0.3299986014658607,0.3247653273668214,0.31957282753657923,0.31442107610955433,0.3093100500721282,0.30423972921391684,0.29921009607913573,0.29422113591805404,0.2892728366385202,0.28436518875756034,0.2794981853530345,0.27467182201534796,0.26988609679921016,0.26514101017543296,0.26043656498276535,0.255772766379759,0.2511496217966577,0.24656714088730883,0.24202533548109287,0.2375242195348663,0.23306380908491528,0.22864412219892022,0.22426517892792508,0.21992700125831435,0.21562961306379322,0.21137304005737245,0.20715730974335628,0.20298245136933674,0.19884849587819026,0.19475547586008435,0.1907034255044877,0.1866923805521945,0.18272237824736065,0.17879345728955431,0.17490565778582778,0.17105902120281052,0.16725359031883202,0.16348940917607474,0.1597665230327661,0.15608497831541213,0.15244482257108027,0.14884610441973783,0.14528887350665315,0.14177318045486292,0.1382990768177207,0.1348666150315258,0.13147584836824802,0.12812683088835247,0.12481961739373534,0.12155426338077942,0.11833082499354036,0.11514935897707199,0.11200992263090034,0.10891257376266193,0.10585737064191006,0.10284437195410795,0.09987363675481416,0.09694522442407566,0.09405919462104051,0.09121560723880023,0.08841452235947905,0.08565600020957653,0.08294010111558568,0.08026688545988722,0.07763641363694986,0.07504874600983395,0.07250394286702588,0.07000206437960857,0.0675431705587852,0.06512732121377464,0.0627545759100847,0.06042499392818679,0.05813863422259978,0.05589555538140351,0.0536958155861919,0.05153947257248576,0.04942658359061576,0.047357205367093785,0.045331394066487306,0.043349205253809295,0.04141069385744493,0.039515914132621184,0.03766491962544477,0.03585776313751331,0.03409449669112376,0.032375171495084516,0.030699837911153938,0.02906854542111449,0.027481342594496392,0.025938277056972374,0.024439395459427464,0.022984743447727007,0.021574365633189718,0.020208305563784477,0.0188866056960607,0.017609307367828272,0.01637645077159655,0.015188074928788441,0.014044217664740215,0.012944915584498267,0.01189020404942704,0.010880117154635265,0.009914687707238204,0.008993947205458847,0.00811792581858467,0.007286652367785756,0.006500154307807333,0.005758457709542138,0.00506158724349545,0.004409566164147844,0.00380241629522415,0.003240158015879472,0.0027228102478038755,0.002250390443256896,0.001822914574036127,0.0014403971213849663,0.0011028510668464105,0.0008102878840670668,0.0005627175315535873,0.0003601484463899352,0.00020258753891300185,0.00009004018835416625,0.000022510239446429796,0.0],"below":[-2.6231112945529627,-2.623073596166946,-2.6229605118602617,-2.6227720741778136,-2.6225083373304576,-2.6221693771490937,-2.6217552910204986,-2.6212661978050287,-2.620702237736329,-2.620063572303229,-2.619350384114039,-2.6185628767434768,-2.617701274562502,-2.616765822551351,-2.6157567860960986,-2.6146744507691038,-2.6135191220937077,-2.6122911252936034,-2.6109908050272876,-2.609618525108056,-2.608174668210009,-2.606659635560558,-2.605073846619943,-2.603417738748287,-2.6016917668607284,-2.59989640307119,-2.598032136325352,-2.596099472023405,-2.5940989316331797,-2.5920310522942485,-2.589896386413595,-2.587695501253478,-2.585428978512083,-2.583097413897594,-2.5807014166962903,-2.5782416093352882,-2.575718626940538,-2.5731331168906926,-2.5704857383674424,-2.5677771619029297,-2.565008068924816,-2.562179151299606,-2.5592911108747938,-2.556344659020386,-2.5533405161703735,-2.5502794113646763,-2.5471620817920986,-2.5439892723348008,-2.5407617351147884,-2.5374802290429033,-2.5341455193707842,-2.5307583772462428,-2.527319579272488,-2.5238299070716312,-2.5202901468528385,-2.5167010889855446,-2.5130635275780637,-2.5093782600619576,-2.5056460867824746,-2.501867810595371,-2.4980442364704003,-2.4941761711017354,-2.4902644225255814,-2.4863097997452024,-2.4823131123635767,-2.478275170223881,-2.474196783057967,-2.4700787601430063,-2.4659219099664362,-2.4617270398993263,-2.457494955878289,-2.453226462096012,-2.4489223607004993,-2.444583451503071,-2.440210531695188,-2.4358043955741024,-2.4313658342773934,-2.4268956355263507,-2.4223945833782303,-2.417863457987348,-2.4133030353749785,-2.408714087208022,-2.404097380586387,-2.399453677839014,-2.394783736328483,-2.3900883082641053,-2.385368140523428,-2.3806239744820323,-2.375856545851537,-2.371066584525683,-2.3662548144343827,-2.361421953405611,-2.356568713035003,-2.3516957985630227,-2.3468039087595707,-2.3418937358158702,-2.3369659652434964,-2.3320212757803964,-2.3270603393037366,-2.3220838207494294,-2.3170923780381782,-2.312086662007878,-2.3070673163522084,-2.302034977565264,-2.2969902748920474,-2.2919338302846675,-2.2868662583640784,-2.281788166387194,-2.2767001542192076,-2.271602814310969,-2.266496731681239,-2.261382483903674,-2.256260641098368,-2.25113176592781,-2.245996413597082,-2.240855131858148,-2.235708461018099,-2.2305569339511644,-2.225401076114383,-2.220241405566756,-2.2150784329917537,-2.2099126617230267,-2.204744587773192,-2.199574699865539,-2.194403479468548,-2.1892314008330604,-2.1840589310320047,-2.1788865300025213,-2.173714650590388,-2.1619265358763076,-2.1438500089847725,-2.125878705481032,-2.108011988425823,-2.0902492295456896,-2.0725898091035813,-2.05503311576789,-2.037578546480366,-2.0202255063233077,-2.002973408386375,-1.9858216736333474,-1.9687697307691334,-1.9518170161072652,-1.9349629734381188,-1.918207053898087,-1.9015487158398503,-1.884987424703945,-1.868522652891755,-1.85215387964005,-1.8358805908971947,-1.819702279201103,-1.803618443559042,-1.7876285893293349,-1.7717322281050332,-1.755928877599598,-1.7402180615346374,-1.7245993095297132,-1.7090721569942615,-1.6936361450216209,-1.6782908202851923,-1.6630357349367226,-1.6478704465067164,-1.6327945178069658,-1.617807516835188,-1.6029090166817588,-1.5880985954385185,-1.573375836109633,-1.5587403265244852,-1.544191659252577,-1.5297294315203984,-1.515353245130254,-1.501062706381004,-1.4868574259906857,-1.4727370190209954,-1.458701104803581,-1.4447493068681196,-1.430881252872143,-1.4170965745325779,-1.4033949075589547,-1.389775891588266,-1.3762391701214178,-1.3627843904612575,-1.3494112036521275,-1.336119264420915,-1.3229082311195608,-1.309777765668995,-1.2967275335044577,-1.2837572035221758,-1.2708664480273604,-1.2580549426834902,-1.2453223664628468,-1.2326684015982727,-1.2200927335361147,-1.2075950508903284,-1.1951750453977028,-1.1828324118741875,-1.1705668481722777,-1.158378055139444,-1.146265736577563,-1.1342295992033344,-1.1222693526096492,-1.1103847092278825,-1.0985753842910901,-1.0868410957980796,-1.0751815644783327,-1.063596513757754,-1.052085669725225,-1.0406487610999335,-1.029285519199471,-1.0179956779086572,-1.0067789736490882,-0.9956351453493741,-0.9845639344160577,-0.9735650847051869,-0.9626383424945242,-0.9517834564563777,-0.9410001776310322,-0.930288259400766,-0.9196474574644364,-0.9090775298126141,-0.8985782367032568,-0.8881493406379029,-0.8777906063383691,-0.8675018007239442,-0.857282692889057,-0.8471330540814086,-0.8370526576805601,-0.8270412791769546,-0.8170986961513688,-0.8072246882547764,-0.7974190371886183,-0.7876815266854602,-0.778011942490038,-0.7684100723406658,-0.7588757059510105,-0.749408634992216,-0.7400086530753672,-0.7306755557342879,-0.7214091404086607,-0.7122092064274628,-0.7030755549927077,-0.6940079891634829,-0.6850063138402827,-0.6760703357496214,-0.6671998634289193,-0.6583947072116629,-0.649654679212822,-0.6409795933145253,-0.6323692651519816,-0.6238235120996467,-0.6153421532576231,-0.6069250094382943,-0.5985719031531801,-0.5902826586000158,-0.5820571016500415,-0.5738950598355029,-0.5657963623373565,-0.5577608399731762,-0.5497883251852471,-0.5418786520288613,-0.5340316561607905,-0.5262471748279445,-0.5185250468562083,-0.5108651126394508,-0.5032672141287056,-0.4957311948215195,-0.48825689975145936,-0.48084417547778396,-0.4734928700752693,-0.46620283312418775,-0.458973915700437,-0.45180597036581593,-0.444698851158445,-0.43765241358332674,-0.43066651460304783,-0.4237410126286115,-0.41687576751040867,-0.41007064052931697,-0.40332549438793064,-0.39664019320191196,-0.3900146024914721,-0.383448589172969,-0.37694202155062784,-0.3716893317548739,-0.36709310263846984,-0.362454858932219,-0.35777755287230123,-0.3530641179705152,-0.34831746468570335,-0.3435404763866478,-0.33873600560347894,-0.33390687056342466,-0.3290558520056379,-0.3241856902688703,-0.31929908264489965,-0.31439868098988233,-0.30948708958517257,-0.3045668632386147,-0.2996405056168899,-0.2947104677991609,-0.28977914704200125,-0.28484888574543055,-0.27992197060976987,-0.27500063197300423,-0.2700870433183685,-0.26518332094195274,-0.2602915237702515,-0.2554136533177701,-0.2505516537749911,-0.2457074122172706,-0.240882758925492,-0.23607946780960043,-0.23129925692646403,-0.2265437890838224,-0.22181467252243764,-0.21711346166889442,-0.21244165795186323,-0.20780071067498307,-0.20319201793988206,-0.1986169276132052,-0.1940767383318649,-0.18957270054107098,-0.1851417225878414,-0.18082184950759006,-0.17653130672533013,-0.17227179641891616,-0.1680449479471813,-0.16385232011615736,-0.15969540342047223,-0.1555756222567524,-0.1514943371061978,-0.14745284668382108,-0.14345239005212673,-0.1394941486973052,-0.13557924856625833,-0.13170876206302873,-0.1278837100034268,-0.12410506352685649,-0.12037374596454056,-0.11669063466351479,-0.11305656276594067,-0.1094723209434113,-0.10593865908610062,-0.10245628794668712,-0.0990258807391404,-0.09564807469252863,-0.09232347256011819,-0.0890526440841186,-0.08583612741648627,-0.08267443049629067,-0.0795680323841815,-0.07651738455456755,-0.07352291214614567,-0.07058501517147192,-0.06770406968628664,-0.06488042891934293,-0.06211442436350527,-0.05940636682890149,-0.056756547458935075,-0.05416523870995631,-0.05163269529542176,-0.04915915509534777,-0.04674484003189057,-0.04438995691185802,-0.04209469823697688,-0.03985924298271332,-0.03768375734644257,-0.03556839546576304,-0.0335133001077141,-0.031518603329669825,-0.029584427112643127,-0.027710883967735404,-0.025898077516437606,-0.02414610304547945,-0.022455048036895478,-0.02082499267396709,-0.019256010323671864,-0.017748167996252482,-0.0163015267825005,-0.014916142269319964,-0.013592064934128675,-0.01232934051861314,-0.011128010382350572,-0.009988111836774147,-0.008909678459946144,-0.007892740392570704,-0.006937324615666329,-0.006043455210285344,-0.005211153599650115,-0.004440438774057091,-0.003731327498864947,-0.003083834505874207,-0.0024979726683743006,-0.001973753160113282,-0.00151118559842602,-0.0011102781717311945,-0.0007710377515830189,-0.0004934699894504226,-0.00027757939835990904,-0.00012336941953053435,-0.00003084247409702478],"sums":[2.0,2.0,2.0,2.0,2.0],"refuted":false},"replies":2,"drawn":2,"volunteered":0,"volunteered_sum":0.0,"stretch":0,"recent":null,"floor":1.0}');
INSERT INTO watch_states VALUES ('letters', 'default', '18aac4f96a14a28d', '', 1795823919948367, 3, 'a2493bc0420c498bb7ac8a5fa02c70a8', '{"kind":"agreement","promised":0.95,"tested":true,"delta":0.05,"all":{"mean":{"delta":0.05,"n":4,"low":0,"above":[2.7725689310629944,2.772509550766727,2.772410561050478,2.772271928070823,2.772093604427524,2.7718755291440895,2.7716176276427618,2.7713198117139477,2.770981979480075,2.7706040153538747,2.7701857899910785,2.769727160237528,2.7692279690706845,2.7686880455355345,2.768107204674875,2.767485247453978,2.766821960679617,2.7661171169134455,2.765370474379718,2.764581776867349,2.763750753626281,2.7628771192581723,2.7619605736013773,2.7610008016102148,2.759997473228516,2.758950243257436,2.757858751217528,2.7567226212050606,2.755541461742588,2.7543148656237477,2.753042409752295,2.751723654975364,2.7503581459109645,2.7489454107696956,2.7474849611707044,2.7459762919518766,2.7444188809742798,2.742812188920856,2.7411556590894084,2.7394487171798643,2.7376907710758687,2.7358812106207226,2.7340194073876973,2.732104714444774,2.7301364661138456,2.728113977724427,2.7260365453619477,2.7239034456106697,2.7217139352913238,2.7194672511935307,2.717162609803103,2.7147992070243303,2.712376217897347,2.7098927963107156,2.7073480747093495,2.7047411637979217,2.7020711522399212,2.699337106352523,2.69653806979746,2.693673063268104,2.6907410841729664,2.687741106315865,2.684672079573006,2.6815329295672528,2.678322557339896,2.675039839020213,2.6716836254931917,2.6682527420657625,2.6647459881319366,2.6611621368372713,2.6574999347431154,2.6537581014911007,2.6499353294684034,2.646030283474311,2.6420416003886733,2.6379678888428604,2.6338077288938697,2.6295596717022884,2.625222239214839,2.621174563178438,2.617223698302068,2.6132014541267985,2.6091068718078114,2.6049389726439856,2.6006967578079694,2.5963792080772388,2.5919852835665904,2.5875139234625326,2.5829640457600775,2.578334547002459,2.573624302024349,2.568832163699173,2.5639569626911465,2.5589975072127347,2.553952582788231,2.5488209520242124,2.5436013543876985,2.5382925059928327,2.5328930993970045,2.5274018034073498,2.5218172628986375,2.516138098643585,2.5103629071567264,2.5044902605529895,2.498518706422226,2.492446767720976,2.486272942682837,2.47999570474885,2.4736135025194206,2.4671247597293195,2.4605278752474304,2.453821223102951,2.447003152539847,2.4400719881014603,2.433026029747201,2.4258635530034165,2.4185828091505366,2.4111820254487544,2.4036594054045386,2.396013129080405,2.388241353450443,2.3803422128042104,2.3723138192016777,2.3641542629820393,2.355861613329268,2.3474339188974143,2.3388692084987426,2.330165491857879,2.3213207604352757,2.312332988323355,2.30320013321882,2.293920137474683,2.2844909292356848,2.2749104236608213,2.265176524236816,2.2552871241864185,2.2452401079755058,2.235033352922997,2.224664730917681,2.2141321102460774,2.2034333575354976,2.1925663398165005,2.181528926708951,2.1703189927358872,2.158934419769399,2.1473730996126745,2.135632936722344,2.123711851075181,2.1116077811831113,2.099318687260417,2.0868425545468505,2.0741773967902484,2.0613212598920154,2.048272225718684,2.035028416082456,2.0215879968934076,2.0079491824856865,1.9941102401197055,1.9800694946619402,1.9658253334435067,1.9513762112982411,1.9367206557804573,1.9218572725620373,1.9067847510078577,1.8915018699279311,1.8760075035039125,1.8603006273868656,1.8443803249623594,1.8282457937781176,1.8118963521284943,1.7953314457890865,1.7785506548937549,1.761553700945237,1.744340453949391,1.7276275190630896,1.7141850733768713,1.7005894304460796,1.6868403046953868,1.6729375033923486,1.6588809316133108,1.6446705973059175,1.6303066164406252,1.6157892182426585,1.6011187504948887,1.5862956849010925,1.5713206224980139,1.5561942991035436,1.5409175907872428,1.5254915193482668,1.5099172577845974,1.4941961357362918,1.4783296448842795,1.4623194442849992,1.446167365620008,1.4298754183384743,1.4134457946692942,1.3968808744784365,1.3801832299460024,1.3633556300364293,1.3464010447342616,1.3293226490170023,1.3121238265357027,1.294808172973211,1.2773794990493839,1.2598418331420576,1.2457989396180478,1.233046076648539,1.220227820025639,1.2073463207458381,1.194403843511304,1.1814027679224084,1.1683455894352832,1.1552349200672003,1.1420734888326467,1.128864141893134,1.1156098424040888,1.102313670042602,1.0889788202003674,1.0756086028268672,1.062206440908707,1.0487758685720079,1.035320528795958,1.0218441707269228,1.0083506465840362,0.9952333485053848,0.9868387635337162,0.9784396235672775,0.970036455626088,0.9616297904576185,0.953220162526979,0.9448081100061501,0.9363941747622263,0.9279789023446705,0.9195628419715446,0.9111465465147062,0.9027305724839492,0.8943154800100708,0.8859018328268439,0.8774901982518779,0.8690811471663474,0.8606752539935697,0.8522730966764163,0.8438752566535302,0.8354823188343413,0.8270948715728533,0.8187135066401865,0.8103388191958569,0.8019714077577762,0.7936118741709473,0.7852608235748473,0.7769188643694704,0.7685866081800203,0.7602646698202286,0.751953667254285,0.7436542215573657,0.7353669568747362,0.7270925003794124,0.718831482228374,0.7105845355172999,0.7023522962338208,0.6941354032092687,0.6859344980689095,0.6777502251806446,0.6695832316021704,0.6614341670265711,0.6533036837263497,0.6451924364958677,0.6371010825921909,0.629030281674327,0.6209806957408435,0.6129529890658579,0.6045553026137095,0.5957943959053884,0.5870857457603252,0.5784295816799394,0.5698261365974437,0.5612756467975636,0.5527783518359155,0.544334494458045,0.535944320518105,0.5276080788971758,0.5193260214212144,0.5110984027786257,0.5029254804374591,0.4948075145622119,0.48674476793025034,0.47873750584783314,0.4707859960657432,0.46289050869452253,0.4550513161193091,0.44726869291427634,0.43954291575667936,0.43187426334050283,0.4242630162897182,0.41670945707115215,0.4092138699069698,0.40177654068677426,0.3943977568793365,0.38707780744395076,0.3798169827414327,0.3726155744447605,0.36547387544937154,0.35839217978312177,0.3513707825159224,0.3444099796690564,0.3375100681241976,0.3306713455321316,0.3238941102212042,0.31717866110550497,0.3105252975927993,0.30393431949222877,0.29740602692179113,0.29094072021562295,0.28453869983109564,0.27820026625574884,0.27192571991407605,0.26571536107418403,0.25956948975434746,0.25348840562947966,0.24747240793753508,0.24152179538587895,0.23563686605763198,0.22981791731802606,0.2240652457207879,0.21837914691457824,0.21275991554951199,0.20720784518378618,0.2017232281904409,0.19630635566427818,0.1909575173289747,0.18567700144440513,0.18046509471421654,0.1753220821936728,0.1702482471978051,0.16524387120989775,0.16030923379033557,0.1554446124858519,0.15065028273919734,0.14592651779927593,0.14127358863175893,0.13669176383023685,0.13218130952791304,0.12774248930989568,0.12337556412610537,0.11908079220483658,0.11485842896701355,0.11070872694115878,0.10663193567912452,0.10262830167260714,0.09869806827048955,0.09484147559703554,0.0910587604709796,0.08735015632553753,0.08371589312937741,0.08015619730858399,0.07667129166964498,0.07326139532350431,0.06992672361069964,0.06666748802763543,0.06348389615400718,0.060376151581425445,0.05734445384325724,0.054388998345731264,0.0515099763003293,0.04870757465749409,0.045981976041697806,0.04333335868788359,0.04076189637932683,0.0382677583869335,0.035851109410013876,0.033512109518554344,0.03125091409702024,0.02906767378971159,0.026962534447704738,0.02493563707740323,0.02298711779072215,0.021117107756935417,0.019325733156202736,0.017613115134811525,0.015979369762142735,0.014424607989393734,0.012948935610071944,0.01155245322228571,0.010235256192845151,0.008997434623198765,0.007839073317217622,0.00676025175084481,0.005761044043632019,0.004841518932168385,0.004001739745423653,0.0032417643820152223,0.002561645289409997,0.00196142944507497,0.0014411583395855067,0.001000867961696636,0.00064058878539351,0.0003603457589176883,0.0001601582957836373,0.00004004026778552627,0.0],"below":[-4.308685045677459,-4.308606363220367,-4.30837033434693,-4.307977014537564,-4.307426496215998,-4.306718908683895,-4.305854418029471,-4.304833227010241,-4.303655574910105,-4.302321737370957,-4.3008320261991155,-4.299186789146858,-4.297386409669409,-4.29543130665775,-4.293321934147655,-4.291058781005431,-4.288642370590797,-4.28607326039745,-4.283352041671844,-4.280479339010744,-4.277455809938184,-4.274282144462427,-4.27095906461358,-4.26748732396255,-4.263867707122028,-4.260101029230208,-4.256188135417986,-4.25212990026037,-4.247927227212867,-4.243581048033643,-4.239092322192191,-4.234462036265355,-4.229691203321468,-4.224780862293427,-4.219732077341516,-4.214545937206774,-4.209223554555725,-4.203766065317289,-4.1981746280126515,-4.192450423078928,-4.186594652187377,-4.180608537556987,-4.174493321264191,-4.168250264549478,-4.1618806471216585,-4.155385766460543,-4.148766937118722,-4.142025490023212,-4.135162771777612,-4.128180143965497,-4.12107898245568,-4.113860676710001,-4.106526629094253,-4.099078254192879,-4.091516978127984,-4.08384423788326,-4.076061480633335,-4.068170163079103,-4.06017175078949,-4.0520677175501625,-4.043859544719626,-4.03554872059312,-4.027136739774757,-4.018625102558256,-4.010015314316653,-4.0013088849013165,-3.99250732805059,-3.983612160808361,-3.9746249029528293,-3.9655470764357137,-3.95638020483215,-3.9471258128014743,-3.937785425559082,-3.9283605683595417,-3.9188527659911094,-3.9092635422817588,-3.8995944196168772,-3.8898469184686792,-3.8800225569374382,-3.870122850304596,-3.860149310597783,-3.850103446167785,-3.8399867612774656,-3.829800755702639,-3.819546924344883,-3.809226756856259,-3.7988417372758887,-3.7883933436783455,-3.777883047833786,-3.767312314879743,-3.7566826030044895,-3.7459953631418865,-3.7352520386775865,-3.7244540651664977,-3.7136028700613677,-3.7026998724523636,-3.6917464828174964,-3.680744102783761,-3.66969412489882,-3.6585979324130866,-3.6474568990720337,-3.6362723889185684,-3.625045756105285,-3.613778344716448,-3.602471488599482,-3.5911265112058315,-3.579744725440968,-3.5683274335233808,-3.556875926852345,-3.545391485884285,-3.5338753800175398,-3.522328867485329,-3.510753195256732,-3.499149598945492,-3.4875193027264313,-3.475863519259298,-3.464183449619856,-3.4524802832379984,-3.4407551978427287,-3.4290093594137847,-3.417243922139738,-3.405460028382366,-3.3936588086471295,-3.3818413815595365,-3.3700088538472532,-3.358162320327739,-3.346302863901263,-3.3344315555490973,-3.3225494543367304,-3.304040404701616,-3.279232826226118,-3.2545209460011244,-3.229904713649935,-3.205384082470206,-3.1809590092785704,-3.156629454256063,-3.1323953807947147,-3.108256755345677,-3.084213547269162,-3.060265728686469,-3.0364132743343557,-3.012656161421928,-2.988994369490243,-2.9654278802748033,-2.9419566775710204,-2.9185807471028196,-2.8953000763944408,-2.8721146546455207,-2.849024472609526,-2.826029522475565,-2.8031297977536305,-2.7803252931632776,-2.7576160045257625,-2.7350019286596274,-2.7124830632797385,-2.690059406899741,-2.6677309587379354,-2.645497718626521,-2.623359686924186,-2.6013168644319955,-2.57936925231254,-2.5575168520122933,-2.535759665187123,-2.5140976936309114,-2.4925309392072146,-2.471059403783909,-2.449683089170762,-2.4284019970598703,-2.407216128968881,-2.3861254861869594,-2.3651300697234166,-2.3442298802589328,-2.3234249180993256,-2.302715183131774,-2.2821006747834454,-2.2615813919824563,-2.2411573331211043,-2.2208284960212894,-2.200594877902085,-2.180456475349367,-2.160413284287464,-2.1404652999527385,-2.1206125168690577,-2.1008549288250817,-2.081192528853316,-2.061625309210858,-2.0421532613617925,-2.0227763759611688,-2.0034946428405114,-1.984308050994798,-1.9652165885708683,-1.94622024285719,-1.9273190002749532,-1.9085128463704208,-1.8898017658085071,-1.871185742367515,-1.852664758935009,-1.8342387975047543,-1.8159078391746994,-1.7976718641459466,-1.7795308517226658,-1.7614847803129257,-1.7435336274303863,-1.725677369696826,-1.7079159828454609,-1.6902494417250202,-1.6726777203045384,-1.6552007916788465,-1.6378186280747045,-1.6205312008575663,-1.6033384805389275,-1.5862404367842404,-1.5692370384213614,-1.5523282534494964,-1.5355140490486272,-1.5187943915893884,-1.502169246643368,-1.4856385789938096,-1.4692023526466875,-1.45286053084214,-1.4366130760662337,-1.4204599500630333,-1.404401113846966,-1.3884365277154562,-1.3725661512618035,-1.356789943388303,-1.3411078623195716,-1.325519865616078,-1.310025910187849,-1.2946259523083428,-1.2793199476284722,-1.2641078511907673,-1.2489896174436503,-1.2339652002558243,-1.2190345529307607,-1.204197628221259,-1.189454378344088,-1.1748047549946783,-1.1602487093618676,-1.145786192142684,-1.1314171535571516,-1.1171415433631233,-1.1029593108711184,-1.0888704049591567,-1.074874774087592,-1.0609723663139246,-1.0471631293075945,-1.033447010364739,-1.0198239564229181,-1.0062939140757903,-0.9928568295877443,-0.979512648908468,-0.9662613176874608,-0.9531027812884757,-0.9400369848038884,-0.9270638730689931,-0.9141833906762156,-0.9013954819892336,-0.8887000911570189,-0.8760971621277767,-0.8635866386627903,-0.8511684643501672,-0.8388425826184777,-0.8266089367502885,-0.8144674698955897,-0.8024181250851022,-0.7904608452434776,-0.7785955732023779,-0.7668222517134378,-0.7551408234611044,-0.7435512310753563,-0.7320534171442973,-0.7206473242266243,-0.7093328948639719,-0.6981100715931206,-0.6869787969580843,-0.6759390135220629,-0.6649906638792678,-0.6541336906666078,-0.6433680365752519,-0.6326936443620518,-0.6221104568608352,-0.6128129794400605,-0.6042038669180239,-0.5955847147373882,-0.5869585446110948,-0.5783283583109401,-0.5718280999444969,-0.5652204498166826,-0.5585077039967006,-0.5516956233654847,-0.5447899451098924,-0.5377963740170606,-0.5323823787875143,-0.5272741857860673,-0.5219835843428875,-0.5165188345865249,-0.510888158274675,-0.5050997268108339,-0.4991616499774094,-0.4930819653849216,-0.4868686286335657,-0.48052950418034107,-0.4740723569021247,-0.46750484434249684,-0.46083450962783074,-0.454068775036119,-0.4472149362001907,-0.4402801569254466,-0.4332714646008984,-0.4261957461812036,-0.419059744716511,-0.4118700564062254,-0.4046331281523224,-0.3973552555874905,-0.3900425815532369,-0.38270109500305155,-0.37533663030585007,-0.3679548669251511,-0.3605613294497774,-0.35316138795231466,-0.3457959636798894,-0.33850700769698927,-0.3312165446843368,-0.3239299696241036,-0.316652498757651,-0.30938917257280607,-0.3021448589421306,-0.2949242563939393,-0.2877318974987523,-0.2805721523548101,-0.2734492321571661,-0.2663671928358202,-0.25932993874920823,-0.25234122642026285,-0.24540466830309798,-0.23852373656919246,-0.23170176690275726,-0.2249419622957226,-0.21824739683354918,-0.21162101946373207,-0.20506565773961183,-0.198584021532674,-0.19217870670720819,-0.1858521987517253,-0.17960687636211436,-0.17344501497204112,-0.1673687902265541,-0.16138028139536587,-0.15548147472266888,-0.1496742667107816,-0.14396046733527051,-0.13834180318956685,-0.13281992055740027,-0.12739638841168915,-0.1220727013387949,-0.11685028238730003,-0.1117304858407211,-0.1067145999137472,-0.10180384937183544,-0.09699939807411898,-0.09230235143979448,-0.08771375883825,-0.08323461590336785,-0.0788658667725145,-0.07460840625084281,-0.07046308190164075,-0.06643069606349009,-0.06251200779511665,-0.05870773474882396,-0.05501855497348189,-0.05144510864805427,-0.047987999746696236,-0.044647797636455495,-0.04142503860864504,-0.038320227344948055,-0.03533383831932031,-0.032466317136759903,-0.029718081809987966,-0.027089523975099186,-0.024581010047184538,-0.022192882316945474,-0.019925459989264566,-0.01777904016469086,-0.015753898764746397,-0.013850291401948295,-0.01206845419538411,-0.01040860453264987,-0.008870941778927728,-0.007455647933913365,-0.006162888237286881,-0.004992811723357832,-0.003945551725471936,-0.003021226330725488,-0.002219938785478475,-0.001541777852103817,-0.000986818117377917,-0.0005551202528382537,-0.00024673122741101415,-0.00006168447253927263],"sums":[4.0,4.0,4.0,4.0,4.0],"refuted":false},"replies":4,"drawn":4,"volunteered":0,"volunteered_sum":0.0,"stretch":0,"recent":null,"floor":1.0},"promise":{"alpha":0.050000000000000044,"fortune":{"n":4,"waiting":0.5,"logs":[-2.804765184726891,-2.8399695731169623,-2.9066457996172423,-3.034388436547169,-3.284757593783431,-3.7994013385534364,-4.983707647159445,-8.941858921810653],"last":-0.2426370032463342,"most":0.0}},"signals":{"agreement":{"seen":[3841],"counts":[4],"fortune":{"n":4,"waiting":0.9,"logs":[-10.186715331954229,-7.835510059070634,-6.337009720080182,-5.843700254146867,-5.700742637886698,-5.6483201246982535,-5.7412081692439365,-6.153288272655103,-7.71782041862543,-11.839624924315668,-6.250062959570851,-5.79471413112447,-5.517775602309373,-5.379653913904626,-7.009448546099954,-6.022200084083176,-5.335036462367082,-4.9610058702317055,-5.098681074008248,-5.343727115459066,-6.043591604261325,-7.093646822948875,-5.900574232756622,-5.667094931884552,-5.690201912796296,-6.075150600690724,-6.30656774676368,-5.848209087270135,-5.460778370127229,-5.293846116081316],"last":-0.020909278927834868,"most":0.026553731530151947}},"confidence":{"seen":[3841],"counts":[4],"fortune":{"n":4,"waiting":0.9,"logs":[-7.069923300058765,-4.984709504192181,-4.777874571775171,-5.053688443714894,-5.304915799685529,-6.042378395660656,-6.523337772643567,-7.6658157235824955,-10.082888370301465,-13.274569201536666,-5.281245219989803,-5.455592678891875,-5.854910793923712,-6.332027263699738,-4.094710537612679,-4.999176787572646,-6.351088535760676,-7.808273585602922,-5.131671970236054,-5.354795001294214,-6.030553978830783,-7.040323195944931,-5.943917053600048,-5.679497115021892,-5.67874541853939,-6.0388398272341774,-5.379653913904626,-5.517775602309373,-5.79471413112447,-6.250062959570851],"last":0.00357361418497143,"most":0.05227664091021403}},"cost":{"seen":[1772],"counts":[4],"fortune":{"n":4,"waiting":0.9,"logs":[-12.56867180926894,-9.124077272196974,-7.001592386794071,-6.177616265555294,-5.867922948614437,-5.4808731035634946,-5.40613992806003,-5.482553167344083,-6.37176674594269,-8.991481194347548,-6.250062959570851,-5.79471413112447,-5.517775602309373,-5.379653913904626,-6.0388398272341774,-5.67874541853939,-5.679497115021892,-5.943917053600048,-7.040323195944931,-6.030553978830783,-5.354795001294214,-5.131671970236054,-6.900574232756622,-6.017094931884552,-5.340201912796297,-5.075150600690724,-6.30656774676368,-5.848209087270135,-5.460778370127229,-5.293846116081316],"last":-0.01892646906045091,"most":0.02405607372367166}}},"latency":{"test":{"times":{},"fortune":{"n":0,"waiting":0.9,"logs":[-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201,-5.703782474656201],"last":0.0,"most":0.0}},"half_hour":997679,"replies":4,"logs":-10.379424653216951,"lately":[]},"rung":{},"open":[],"explored":0,"failed":0,"audits_nano":560000,"explored_nano":0,"groups":["vip"],"stretch":0,"lately":{"promise":[[1.0,1.0],[1.0,1.0],[1.0,1.0],[1.0,1.0]],"agreement":[[1.0,1.0],[1.0,1.0],[1.0,1.0],[1.0,1.0]],"confidence":[[1.0,1.0],[1.0,1.0],[1.0,1.0],[1.0,1.0]],"cost":[[0.000014,1.0],[0.000014,1.0],[0.000014,1.0],[0.000014,1.0]]}}');
ALTER TABLE ONLY alarms
    ADD CONSTRAINT alarms_pkey PRIMARY KEY (id);
ALTER TABLE ONLY audits
    ADD CONSTRAINT audits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY deployments
    ADD CONSTRAINT deployments_pkey PRIMARY KEY (policy, mode, number);
ALTER TABLE ONLY farthing_version
    ADD CONSTRAINT farthing_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (id);
ALTER TABLE ONLY gateway_keys
    ADD CONSTRAINT gateway_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger_holds
    ADD CONSTRAINT ledger_holds_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger_keys
    ADD CONSTRAINT ledger_keys_pkey PRIMARY KEY (key);
ALTER TABLE ONLY ledger_schema
    ADD CONSTRAINT ledger_schema_pkey PRIMARY KEY (version);
ALTER TABLE ONLY ledger_windows
    ADD CONSTRAINT ledger_windows_pkey PRIMARY KEY (account, "window");
ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY traffic_failures
    ADD CONSTRAINT traffic_failures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY traffic_hours_calls
    ADD CONSTRAINT traffic_hours_calls_pkey PRIMARY KEY (hour, policy, model, later);
ALTER TABLE ONLY traffic_hours_failures
    ADD CONSTRAINT traffic_hours_failures_pkey PRIMARY KEY (hour, model, status, code);
ALTER TABLE ONLY traffic_hours_latency
    ADD CONSTRAINT traffic_hours_latency_pkey PRIMARY KEY (hour, policy, kind, model, bucket);
ALTER TABLE ONLY traffic_hours
    ADD CONSTRAINT traffic_hours_pkey PRIMARY KEY (hour, policy, model, promise);
ALTER TABLE ONLY traffic_losses
    ADD CONSTRAINT traffic_losses_pkey PRIMARY KEY (what);
ALTER TABLE ONLY traffic_outside
    ADD CONSTRAINT traffic_outside_pkey PRIMARY KEY (policy, reason);
ALTER TABLE ONLY traffic_requests
    ADD CONSTRAINT traffic_requests_pkey PRIMARY KEY (id);
ALTER TABLE ONLY traffic_turn
    ADD CONSTRAINT traffic_turn_pkey PRIMARY KEY (one);
ALTER TABLE ONLY watch_events
    ADD CONSTRAINT watch_events_pkey PRIMARY KEY (id, what);
ALTER TABLE ONLY watch_states
    ADD CONSTRAINT watch_states_pkey PRIMARY KEY (policy, mode, certificate, part);
CREATE INDEX alarms_open ON alarms USING btree (at_us) WHERE (closed_at_us IS NULL);
CREATE INDEX audits_by_time ON audits USING btree (at_us);
CREATE INDEX audits_graded ON audits USING btree (policy, certificate, at_us) WHERE ((value IS NOT NULL) AND (purpose = 'audit'::text));
CREATE INDEX audits_kept ON audits USING btree (at_us, id) WHERE ((purpose = 'audit'::text) AND (value >= (0.5)::double precision));
CREATE INDEX audits_not_kept ON audits USING btree (at_us, id) WHERE ((purpose = 'audit'::text) AND (value < (0.5)::double precision));
CREATE INDEX audits_owned ON audits USING btree (owner, due_us, at_us, id) WHERE (state = 'waiting'::text);
CREATE INDEX audits_ungraded ON audits USING btree (at_us, id) WHERE ((value IS NULL) AND (purpose = 'audit'::text));
CREATE INDEX audits_waiting ON audits USING btree (until_us) WHERE (state = 'waiting'::text);
CREATE INDEX feedback_by_time ON feedback USING btree (at_us);
CREATE UNIQUE INDEX gateway_keys_name ON gateway_keys USING btree (name) WHERE (revoked_us IS NULL);
CREATE INDEX ledger_leases ON ledger_holds USING btree (lease_ends) WHERE (state <> 'unknown'::text);
CREATE INDEX traffic_by_key ON traffic_requests USING btree (key_id, at_us, id);
CREATE INDEX traffic_by_kind ON traffic_requests USING btree (policy, model, promise, at_us, id);
CREATE INDEX traffic_by_talk ON traffic_requests USING btree (conversation, at_us);
CREATE INDEX traffic_by_time ON traffic_requests USING btree (at_us, id);
CREATE INDEX traffic_failures_by_key ON traffic_failures USING btree (key_id, at_us, id);
CREATE INDEX traffic_failures_by_status ON traffic_failures USING btree (status, at_us, id);
CREATE INDEX traffic_failures_by_time ON traffic_failures USING btree (at_us, id);
CREATE INDEX traffic_under ON traffic_requests USING btree (policy, certificate, at_us, promise, cost_nano) WHERE (certificate IS NOT NULL);
CREATE INDEX watch_events_in_order ON watch_events USING btree (policy, mode, certificate, at_us, id, what);
