"""Results as tables, as a comparison of two policies, and as a page."""
