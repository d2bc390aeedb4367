-- Operations of the ledger: each batch of them is one call of `ledger_apply`.
ALTER TABLE ledger_windows SET (fillfactor = 50);

-- Lock every account and key that operations touch. The order is the same for everyone, so that of
-- two who want the same locks neither waits for the other. Locks end with the transaction.
CREATE OR REPLACE FUNCTION ledger_lock(operations jsonb) RETURNS void LANGUAGE plpgsql AS $$
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

-- Add to windows what stands in rows of the same shape, each window once. Where windows are old,
-- those that were dropped meanwhile stay dropped.
CREATE OR REPLACE FUNCTION ledger_add(changes ledger_windows[], old boolean) RETURNS void LANGUAGE plpgsql AS $$
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

-- Write holds if every check on any of them allows all of them together; else write nothing, and
-- return which checks fail, by their order, with what is used there. A window is written once for
-- all holds: each writing leaves a version of the row behind, and those of a crowd add up.
CREATE OR REPLACE FUNCTION ledger_reserve(operations jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Return what closing a hold at a cost changes in its windows; one of unknown outcome was charged in
-- full before.
CREATE OR REPLACE FUNCTION ledger_change(hold ledger_holds, nano bigint, tokens bigint, calls bigint)
RETURNS SETOF ledger_windows LANGUAGE plpgsql AS $$
DECLARE
    charged integer := (hold.state = 'unknown')::integer;
BEGIN
    RETURN QUERY SELECT a, s,
        nano - charged * hold.nano, tokens - charged * hold.tokens, calls - charged * hold.calls,
        (charged - 1) * hold.nano, (charged - 1) * hold.tokens, (charged - 1) * hold.calls,
        greatest(0, nano - hold.nano)
    FROM unnest(hold.accounts) a, unnest(hold.windows) s;
END $$;

-- Add up changes, so that each window comes once.
CREATE OR REPLACE FUNCTION ledger_sum(changes ledger_windows[]) RETURNS ledger_windows[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(SELECT ROW(account, "window", sum(settled_nano), sum(settled_tokens),
        sum(settled_calls), sum(held_nano), sum(held_tokens), sum(held_calls),
        sum(overcharged_nano))::ledger_windows
        FROM unnest(changes) GROUP BY account, "window");
END $$;

-- Close holds at their costs; return the ids of those that could be closed.
CREATE OR REPLACE FUNCTION ledger_settle(operations jsonb) RETURNS text[] LANGUAGE plpgsql AS $$
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

-- Charge a hold in full and mark it.
CREATE OR REPLACE FUNCTION ledger_mark(asked_id text, now text) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Close every hold whose lease has ended.
CREATE OR REPLACE FUNCTION ledger_sweep(now text) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Take an idempotency key, or say who has it.
CREATE OR REPLACE FUNCTION ledger_claim(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Drop old keys, and minutes and hours in which nothing is set aside.
CREATE OR REPLACE FUNCTION ledger_forget(before text, now text) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Carry out one operation; what it touches is locked.
CREATE OR REPLACE FUNCTION ledger_do(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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

-- Carry out operations and return their outcomes, in the caller's transaction. Each statement sees
-- what was committed before it began: after locking, that is all there is.
--
-- Reservations that fit all together are written together, before the rest: nothing in the same
-- batch waits for another's outcome. Settling likewise, where no hold is named twice. Where they do
-- not fit, each is tried by itself.
CREATE OR REPLACE FUNCTION ledger_apply(operations jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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
END $$;
