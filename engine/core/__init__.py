"""The pure core: session state, the events that make it, and the rules that decide.

Nothing here awaits, reads a clock, draws a random number, logs or touches a
database; everything of that kind arrives as data in a command or in
:class:`engine.core.env.Env`. Read `state.py`, then `events.py`, then `handle.py`.
"""
