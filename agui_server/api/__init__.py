"""The HTTP APIs beside AG-UI."""
