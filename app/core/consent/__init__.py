"""What agents may do, and how people are asked."""
