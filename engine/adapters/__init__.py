"""Adapters: one outside system a file, each behind a Protocol of the core."""
