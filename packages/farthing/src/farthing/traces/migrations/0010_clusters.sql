-- What joins a question to others that are no independent draws beside it; NULL where nobody says.

ALTER TABLE traces ADD COLUMN cluster TEXT CHECK (cluster <> '');
