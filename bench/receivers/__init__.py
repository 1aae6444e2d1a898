"""Others who receive webhooks, to measure the bridge against; none of them stores anything."""
