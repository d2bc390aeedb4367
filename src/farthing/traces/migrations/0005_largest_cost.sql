-- The most that a call could have cost when it was sent; NULL where nobody recorded it.

ALTER TABLE calls ADD COLUMN largest_cost_usd REAL CHECK (largest_cost_usd >= 0);
