"""Values, and arithmetic on blocks of rows."""
