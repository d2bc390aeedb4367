-- What collected traces were made with: models, parameters, prompts and prices. Traces that were
-- imported, or stored before this table, have no entry.

CREATE TABLE systems (
    id     INTEGER PRIMARY KEY,
    system TEXT NOT NULL UNIQUE          -- JSON object: role to what answered in it
) STRICT;

ALTER TABLE traces ADD COLUMN system INTEGER REFERENCES systems (id);
