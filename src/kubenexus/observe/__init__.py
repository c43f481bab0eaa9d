"""What happened and why, for people. Changes nothing; earlier rooms never call it."""
