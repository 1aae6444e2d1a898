"""From a stored delivery to a turn: who may, who answers, one commit."""
