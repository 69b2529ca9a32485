"""Draw the pictures of `docs/images` that come from tables: `make diagrams`."""

from engine.core.status import LIVES
from tests.diagrams.draw import draw, file_of

if __name__ == "__main__":
    for kind in LIVES:
        file_of(kind).write_text(draw(kind), encoding="utf-8")
