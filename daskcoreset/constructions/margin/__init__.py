"""Maximum-margin separators with a certificate, from rows larger than memory."""
