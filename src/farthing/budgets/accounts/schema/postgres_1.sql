-- Version 1. Money is integer nano-dollars, moments are text in UTC, names compare byte by byte.
CREATE TABLE ledger_schema (version integer PRIMARY KEY);
INSERT INTO ledger_schema VALUES (1);

-- What was spent and is set aside: an account in a window, such as 2026-11-22T14:05, 2026-11 or total.
-- Rows change all the time: room on their page keeps such a change from touching the index.
CREATE TABLE ledger_windows (
    account text COLLATE "C" NOT NULL,
    "window" text COLLATE "C" NOT NULL,
    settled_nano bigint NOT NULL DEFAULT 0,
    settled_tokens bigint NOT NULL DEFAULT 0,
    settled_calls bigint NOT NULL DEFAULT 0,
    held_nano bigint NOT NULL DEFAULT 0,
    held_tokens bigint NOT NULL DEFAULT 0,
    held_calls bigint NOT NULL DEFAULT 0,
    overcharged_nano bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account, "window")
) WITH (fillfactor = 50);

-- Calls under way, and those of unknown outcome that nobody has reconciled.
CREATE TABLE ledger_holds (
    id text COLLATE "C" PRIMARY KEY,
    accounts text[] NOT NULL,
    windows text[] NOT NULL,
    nano bigint NOT NULL,
    tokens bigint NOT NULL,
    calls bigint NOT NULL,
    made_at text COLLATE "C" NOT NULL,
    lease_ends text COLLATE "C" NOT NULL,
    state text NOT NULL CHECK (state IN ('reserved', 'sent', 'unknown')),
    note text NOT NULL,
    marked_at text COLLATE "C"
);
CREATE INDEX ledger_leases ON ledger_holds (lease_ends) WHERE state <> 'unknown';

-- Idempotency keys; status and body are there once the request was answered.
CREATE TABLE ledger_keys (
    key text COLLATE "C" PRIMARY KEY,
    fingerprint text NOT NULL,
    token text NOT NULL,
    claimed_at text COLLATE "C" NOT NULL,
    lease_ends text COLLATE "C" NOT NULL,
    status integer,
    body bytea
);

-- Lock every account and key that operations touch. The order is the same for everyone, so that of
-- two who want the same locks neither waits for the other. Locks end with the transaction.
CREATE FUNCTION ledger_lock(operations jsonb) RETURNS void LANGUAGE plpgsql AS $$
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

-- Write a hold if every check allows it. The hold is there already where the connection broke
-- after a first try.
CREATE FUNCTION ledger_reserve(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    hold ledger_holds := jsonb_populate_record(NULL::ledger_holds, operation -> 'hold');
    broken jsonb;
BEGIN
    IF EXISTS (SELECT FROM ledger_holds WHERE id = hold.id) THEN
        RETURN '{"type": "ok"}';
    END IF;
    SELECT jsonb_agg(jsonb_build_array(c.number - 1, c.used) ORDER BY c.number) INTO broken FROM (
        SELECT number, most, needed, coalesce(CASE unit
            WHEN 'usd' THEN w.settled_nano + w.held_nano
            WHEN 'tokens' THEN w.settled_tokens + w.held_tokens
            ELSE w.settled_calls + w.held_calls END, 0) AS used
        FROM ROWS FROM (
            jsonb_to_recordset(operation -> 'checks')
                AS (account text, "window" text, unit text, most bigint, needed bigint)
        ) WITH ORDINALITY AS c (account, "window", unit, most, needed, number)
        LEFT JOIN ledger_windows w ON w.account = c.account AND w."window" = c."window"
    ) AS c WHERE c.used + c.needed > c.most;
    IF broken IS NOT NULL THEN
        RETURN jsonb_build_object('type', 'broken', 'used', broken);
    END IF;
    INSERT INTO ledger_holds SELECT hold.*;
    INSERT INTO ledger_windows AS w (account, "window", held_nano, held_tokens, held_calls)
        SELECT a, s, hold.nano, hold.tokens, hold.calls
        FROM unnest(hold.accounts) a, unnest(hold.windows) s
        ON CONFLICT (account, "window") DO UPDATE SET
            held_nano = w.held_nano + excluded.held_nano,
            held_tokens = w.held_tokens + excluded.held_tokens,
            held_calls = w.held_calls + excluded.held_calls;
    RETURN '{"type": "ok"}';
END $$;

-- Charge a hold's windows; one of unknown outcome was charged in full before.
CREATE FUNCTION ledger_charge(hold ledger_holds, nano bigint, tokens bigint, calls bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    held integer := (hold.state <> 'unknown')::integer;
    charged integer := 1 - held;
BEGIN
    UPDATE ledger_windows w SET
        held_nano = w.held_nano - held * hold.nano,
        held_tokens = w.held_tokens - held * hold.tokens,
        held_calls = w.held_calls - held * hold.calls,
        settled_nano = w.settled_nano + ledger_charge.nano - charged * hold.nano,
        settled_tokens = w.settled_tokens + ledger_charge.tokens - charged * hold.tokens,
        settled_calls = w.settled_calls + ledger_charge.calls - charged * hold.calls,
        overcharged_nano = w.overcharged_nano + greatest(0, ledger_charge.nano - hold.nano)
    WHERE w.account = ANY (hold.accounts) AND w."window" = ANY (hold.windows);
END $$;

-- Close a hold at a cost.
CREATE FUNCTION ledger_settle(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    hold ledger_holds;
BEGIN
    DELETE FROM ledger_holds WHERE id = operation ->> 'id'
        AND (state = 'unknown' OR NOT (operation -> 'marked')::boolean)
        RETURNING * INTO hold;
    IF NOT FOUND THEN
        RETURN '{"type": "gone"}';
    END IF;
    PERFORM ledger_charge(hold, (operation -> 'nano')::bigint, (operation -> 'tokens')::bigint,
        (operation -> 'calls')::bigint);
    RETURN '{"type": "ok"}';
END $$;

-- Charge a hold in full and mark it.
CREATE FUNCTION ledger_mark(asked_id text, now text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    hold ledger_holds;
BEGIN
    SELECT * INTO hold FROM ledger_holds WHERE id = asked_id;
    IF NOT FOUND THEN
        RETURN '{"type": "gone"}';
    END IF;
    IF hold.state <> 'unknown' THEN
        PERFORM ledger_charge(hold, hold.nano, hold.tokens, hold.calls);
        UPDATE ledger_holds SET state = 'unknown', marked_at = now WHERE id = asked_id;
    END IF;
    RETURN '{"type": "ok"}';
END $$;

-- Close every hold whose lease has ended.
CREATE FUNCTION ledger_sweep(now text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    hold ledger_holds;
    returned integer := 0;
    charged integer := 0;
BEGIN
    FOR hold IN DELETE FROM ledger_holds WHERE state = 'reserved' AND lease_ends <= now RETURNING *
    LOOP
        PERFORM ledger_charge(hold, 0, 0, 0);
        returned := returned + 1;
    END LOOP;
    FOR hold IN SELECT * FROM ledger_holds WHERE state = 'sent' AND lease_ends <= now
    LOOP
        PERFORM ledger_mark(hold.id, now);
        charged := charged + 1;
    END LOOP;
    RETURN jsonb_build_object('type', 'closed', 'returned', returned, 'charged', charged);
END $$;

-- Take an idempotency key, or say who has it.
CREATE FUNCTION ledger_claim(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
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
CREATE FUNCTION ledger_forget(before text, now text) RETURNS jsonb LANGUAGE plpgsql AS $$
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
CREATE FUNCTION ledger_do(operation jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    rows jsonb;
BEGIN
    CASE operation ->> 'type'
    WHEN 'reserve' THEN
        RETURN ledger_reserve(operation);
    WHEN 'settle' THEN
        RETURN ledger_settle(operation);
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

-- Carry out operations in their order and return their outcomes, in the caller's transaction.
-- Each statement sees what was committed before it began: after locking, that is all there is.
CREATE FUNCTION ledger_apply(operations jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    operation jsonb;
    outcomes jsonb[] := '{}';
BEGIN
    PERFORM ledger_lock(operations);
    FOR operation IN SELECT * FROM jsonb_array_elements(operations) LOOP
        outcomes := array_append(outcomes, ledger_do(operation));
    END LOOP;
    RETURN to_jsonb(outcomes);
END $$;
