"""The shell around the core: one write path, the outside work, and the live text."""
