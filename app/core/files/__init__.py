"""Files that go along: what people attach for agents, and what agents make for people."""
