"""The ways people reach an agent, and what all of them share."""
