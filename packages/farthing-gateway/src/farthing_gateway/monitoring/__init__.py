"""The promise in live traffic: audits, feedback, intervals that hold at any time, and alarms."""
