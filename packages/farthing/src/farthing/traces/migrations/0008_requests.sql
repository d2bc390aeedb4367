-- How many requests a question stands for, of which an import kept the first reply of each model.

ALTER TABLE traces ADD COLUMN requests INTEGER NOT NULL DEFAULT 1 CHECK (requests >= 1);
