-- What live collection asks and pays for: every try of every call, and the money behind it.

CREATE TABLE call_log (
    number        INTEGER PRIMARY KEY,
    key           TEXT NOT NULL,         -- SHA-256 of model, parameters, messages and attempt
    question      TEXT NOT NULL,
    round         INTEGER NOT NULL,
    role          TEXT NOT NULL,
    asked         TEXT NOT NULL,         -- name of the model or tool
    state         TEXT NOT NULL CHECK (state IN ('started', 'completed', 'failed', 'unknown')),
    reserved_nano INTEGER NOT NULL,      -- the most that the try can cost
    cost_nano     INTEGER,               -- NULL while it is under way
    reply         TEXT,                  -- JSON; of a completed try
    error_type    TEXT,
    error_message TEXT,
    started_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    finished_at   TEXT
) STRICT;

CREATE INDEX call_log_by_key ON call_log (key);
CREATE INDEX call_log_under_way ON call_log (number) WHERE state = 'started';
-- A call that was answered is never answered, and so never paid, a second time.
CREATE UNIQUE INDEX call_log_answered_once ON call_log (key) WHERE state = 'completed';

CREATE TABLE spending (
    only          INTEGER PRIMARY KEY CHECK (only = 1),
    settled_nano  INTEGER NOT NULL CHECK (settled_nano >= 0),
    reserved_nano INTEGER NOT NULL CHECK (reserved_nano >= 0)
) STRICT;

INSERT INTO spending VALUES (1, 0, 0);

CREATE TABLE reservations (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again
    nano INTEGER NOT NULL CHECK (nano >= 0)
) STRICT;
