"""What the API server says, decoded once, and only the fields that scheduling needs. No I/O."""
