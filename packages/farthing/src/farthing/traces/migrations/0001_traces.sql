-- One row a question and one row a call, in the order in which they were imported.

CREATE TABLE traces (
    position    INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    task        TEXT NOT NULL,
    stratum     TEXT,                    -- `group` in the record, a keyword here
    split       TEXT,
    question    TEXT NOT NULL,
    gold        TEXT NOT NULL,           -- JSON list of accepted answers
    independent INTEGER NOT NULL CHECK (independent IN (0, 1)),
    truncated   INTEGER NOT NULL CHECK (truncated IN (0, 1))
) STRICT;

CREATE TABLE calls (
    trace         INTEGER NOT NULL REFERENCES traces (position) ON DELETE CASCADE,
    position      INTEGER NOT NULL,      -- place in the record's list of calls, from 0
    round         INTEGER NOT NULL CHECK (round >= 1),
    role          TEXT NOT NULL,
    model         TEXT,
    answer        TEXT,
    correct       INTEGER CHECK (correct IN (0, 1)),
    text          TEXT,
    verdict       INTEGER CHECK (verdict IN (0, 1)),
    confidence    REAL CHECK (confidence BETWEEN 0 AND 1),
    uncertainty   REAL CHECK (uncertainty >= 0),
    input_tokens  INTEGER,
    output_tokens INTEGER,
    tool_calls    INTEGER,
    latency_s     REAL,
    cost_nano     INTEGER CHECK (cost_nano >= 0),  -- nano-dollars, rounded up: what is added up
    cost_usd      REAL,                  -- dollars as they were recorded: what is given back
    error_type    TEXT,
    error_message TEXT,
    f1            REAL,
    score         REAL,
    extra         TEXT,                  -- JSON object of other numbers; NULL for none
    PRIMARY KEY (trace, position)
) STRICT;
