-- The most that a call could have cost when it was sent; NULL where that was not recorded.

ALTER TABLE calls ADD COLUMN largest_cost_nano INTEGER CHECK (largest_cost_nano >= 0);
ALTER TABLE calls ADD COLUMN largest_cost_usd REAL;
