"""Values, how they are stored, and arithmetic on blocks of rows."""
