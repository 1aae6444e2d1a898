"""Files in both directions: attachments for agents, and files that agents make for people."""
