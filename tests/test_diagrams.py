"""The pictures of the documents are what the tables draw."""

from dataclasses import replace
from itertools import combinations
from typing import get_args
from xml.etree import ElementTree as ET

import pytest

from engine.core.status import LIVES, Kind, Step
from tests.diagrams import draw, places

SVG = "{http://www.w3.org/2000/svg}"

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

EVENT, WHEN = 7.3, 6.4
"""How wide a letter is, on average: of an event, and of a reason."""

every_kind = pytest.mark.parametrize("kind", get_args(Kind))


def words_of(kind: Kind) -> list[tuple[str, Box]]:
    """Return the lines of words beside the arrows, and where each stands."""
    found: list[tuple[str, Box]] = []
    picture = ET.fromstring(draw.draw(kind))  # noqa: S314 - our own text
    for text in picture.iter(f"{SVG}text"):
        spans = [(span.get("class"), span.text or "") for span in text]
        if not spans:
            continue
        wide = sum(len(said) * (EVENT if style == "event" else WHEN) for style, said in spans)
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "start")]
        left, base = float(text.get("x", "0")) - share * wide, float(text.get("y", "0"))
        box = (left, base - 11, left + wide, base + 3)
        found.append(("".join(said for _, said in spans), box))
    return found


def states_of(kind: Kind) -> list[tuple[str, Box]]:
    """Return the states, and where each stands."""
    across, down = draw.WIDTH / 2, draw.HEIGHT / 2
    return [
        (name, (x - across, y - down, x + across, y + down))
        for name, (x, y) in places.PICTURES[kind].states.items()
    ]


@every_kind
def test_the_picture_is_what_the_table_draws(kind: Kind) -> None:
    """Byte for byte; `make diagrams` draws it anew."""
    assert draw.file_of(kind).read_text(encoding="utf-8") == draw.draw(kind)


@every_kind
def test_the_picture_shows_every_row(kind: Kind) -> None:
    """Each state, each type of event and each reason stands there in words."""
    words = set[str]()
    picture = ET.fromstring(draw.draw(kind))  # noqa: S314 - our own text
    for text in picture.iter(f"{SVG}text"):
        words |= {word.strip("·,: ") for word in " ".join(text.itertext()).split()}
    for step in LIVES[kind]:
        expected = {step.before or step.after, step.after, step.event, *step.when.split()}
        assert {word.strip("·,: ") for word in expected} <= words, step


@every_kind
def test_nothing_stands_outside_its_picture(kind: Kind) -> None:
    """Neither words nor states."""
    width, height = places.PICTURES[kind].size
    for name, (left, top, right, bottom) in [*words_of(kind), *states_of(kind)]:
        assert left >= 0, name
        assert top >= 0, name
        assert right <= width, name
        assert bottom <= height, name


@every_kind
def test_no_words_lie_on_others(kind: Kind) -> None:
    """Nor on a state: a reason that got longer may need another place."""
    for (one, first), (other, second) in combinations([*words_of(kind), *states_of(kind)], 2):
        apart = (
            first[2] <= second[0]
            or second[2] <= first[0]
            or first[3] <= second[1]
            or second[3] <= first[1]
        )
        assert apart, f"{one!r} lies on {other!r}"


def test_a_row_without_an_arrow_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever adds a row says where its arrow goes."""
    more = (*LIVES["interrupt"], Step("resolved", "session.interrupted", "open", "never"))
    monkeypatch.setitem(LIVES, "interrupt", more)
    with pytest.raises(ValueError, match="rows and arrows differ"):
        draw.draw("interrupt")


def test_an_arrow_without_a_row_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is gone takes its arrow along."""
    picture = places.PICTURES["call"]
    fewer = replace(picture, arrows=picture.arrows[:-1])
    monkeypatch.setitem(places.PICTURES, "call", fewer)
    with pytest.raises(ValueError, match="The life of a call"):
        draw.draw("call")
