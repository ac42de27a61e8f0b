"""The four ways to a coreset: draws, trees, covers and margins."""
