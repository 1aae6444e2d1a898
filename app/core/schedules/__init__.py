"""Schedules: what an agent is asked again and again, at the times of a cron expression."""
