"""Where logs are kept: one Protocol, and the same contract for every database."""
