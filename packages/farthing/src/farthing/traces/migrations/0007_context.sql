-- What a question was asked with beside its text, why calls are missing, and with what probability a
-- call was made. NULL where nobody says.

ALTER TABLE traces ADD COLUMN system_prompt TEXT;
ALTER TABLE traces ADD COLUMN history TEXT;
ALTER TABLE traces ADD COLUMN options TEXT;
ALTER TABLE traces ADD COLUMN parameters TEXT;
ALTER TABLE traces ADD COLUMN missing_because TEXT
    CHECK (missing_because IN ('chance', 'earlier_reply', 'unknown'));
ALTER TABLE calls ADD COLUMN asked_probability REAL
    CHECK (asked_probability > 0 AND asked_probability <= 1);
