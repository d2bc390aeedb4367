-- Version 1. Money is integer nano-dollars, moments are text in UTC, lists are JSON.
BEGIN IMMEDIATE;

CREATE TABLE IF NOT EXISTS ledger_schema (version INTEGER PRIMARY KEY) STRICT;
INSERT OR IGNORE INTO ledger_schema VALUES (1);

-- What was spent and is set aside: an account in a window, such as 2026-11-22T14:05, 2026-11 or total.
CREATE TABLE IF NOT EXISTS ledger_windows (
    account TEXT NOT NULL,
    "window" TEXT NOT NULL,
    settled_nano INTEGER NOT NULL DEFAULT 0,
    settled_tokens INTEGER NOT NULL DEFAULT 0,
    settled_calls INTEGER NOT NULL DEFAULT 0,
    held_nano INTEGER NOT NULL DEFAULT 0,
    held_tokens INTEGER NOT NULL DEFAULT 0,
    held_calls INTEGER NOT NULL DEFAULT 0,
    overcharged_nano INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account, "window")
) STRICT, WITHOUT ROWID;

-- Calls under way, and those of unknown outcome that nobody has reconciled.
CREATE TABLE IF NOT EXISTS ledger_holds (
    id TEXT PRIMARY KEY,
    accounts TEXT NOT NULL,
    windows TEXT NOT NULL,
    nano INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    made_at TEXT NOT NULL,
    lease_ends TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'sent', 'unknown')),
    note TEXT NOT NULL,
    marked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ledger_leases ON ledger_holds (lease_ends) WHERE state <> 'unknown';

-- Idempotency keys; status and body are there once the request was answered.
CREATE TABLE IF NOT EXISTS ledger_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    token TEXT NOT NULL,
    claimed_at TEXT NOT NULL,
    lease_ends TEXT NOT NULL,
    status INTEGER,
    body BLOB
) STRICT;

COMMIT;
