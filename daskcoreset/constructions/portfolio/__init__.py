"""Several coresets, and what is known of all rows, from the same reads."""
