"""Shows posts in Slack threads: streams, edited messages, answers and files."""
