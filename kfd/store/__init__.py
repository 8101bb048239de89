"""SQLite state: current rows and the event log in one transaction. The only place that speaks SQL."""
