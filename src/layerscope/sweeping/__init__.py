"""Many networks: sources as tasks, worker processes with limits, results in SQLite."""
