-- Where each question came from. Questions that were stored before this log have no entry.

CREATE TABLE imports (
    id          INTEGER PRIMARY KEY,
    source      TEXT NOT NULL,           -- file or generator that the traces came from
    sha256      TEXT,                    -- of the file, in hexadecimal; NULL where there is none
    imported_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) STRICT;

ALTER TABLE traces ADD COLUMN import INTEGER REFERENCES imports (id);
CREATE INDEX traces_by_import ON traces (import);
