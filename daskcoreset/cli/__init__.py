"""The command-line program."""
