-- Whether a cut of a thought is the thought's own end; NULL where nobody says.

ALTER TABLE calls ADD COLUMN ended INTEGER CHECK (ended IN (0, 1));
