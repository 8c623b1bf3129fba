"""Playing many episodes at once, tuning the dial, statistics over seeds."""
