"""The AG-UI channel: runs over turns."""
