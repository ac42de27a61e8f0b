"""Coresets drawn by sensitivities, in one read or two."""
