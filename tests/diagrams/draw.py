"""Draw a table of a life as an SVG. The same table gives the same bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from engine.core.status import LIVES, Kind, Step
from tests.diagrams.places import PICTURES, TONES, Arrow, Ends, Frame, Picture, Point

FOLDER = Path(__file__).parents[2] / "docs" / "images"

WIDTH, HEIGHT, ROUND = 130, 44, 12
"""The size of a state, and the radius of an arrow's corner."""

LINE, GAP = 17, 7
"""From one line of words to the next, and what more there is between two reasons."""

STYLE = """\
    .name { font: 600 15px system-ui, -apple-system, 'Segoe UI', sans-serif }
    .event { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1c2430 }
    .when { font: 12.5px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #5b6777 }
    .line { fill: none; stroke: #8794a5; stroke-width: 1.5 }
    .tip, .dot { fill: #8794a5 }
    .frame { fill: none; stroke: #9aa6b5; stroke-width: 1.25; stroke-dasharray: 5 5 }
    rect { stroke-width: 1.75 }
    .still rect { fill: #eef1f5; stroke: #8794a5 } .still text { fill: #3c4757 }
    .busy rect { fill: #e8efff; stroke: #4b74d6 } .busy text { fill: #27489b }
    .asks rect { fill: #fff4dc; stroke: #d79a1e } .asks text { fill: #7d560a }
    .good rect { fill: #e3f5ec; stroke: #2b8a5f } .good text { fill: #1f6b49 }
    .bad rect { fill: #fdeaea; stroke: #c9504f } .bad text { fill: #98302f }
    .gone rect { fill: #f6f7f9; stroke: #b3bcc8 } .gone text { fill: #697586 }
    @media (prefers-color-scheme: dark) {
      .event { fill: #e6ebf2 } .when { fill: #9aa6b5 }
      .line { stroke: #6b7889 } .tip, .dot { fill: #6b7889 } .frame { stroke: #56616f }
      .still rect { fill: #1c232d; stroke: #6b7889 } .still text { fill: #c4cdd9 }
      .busy rect { fill: #17233f; stroke: #6d93ee } .busy text { fill: #a9c2fb }
      .asks rect { fill: #3a2d0f; stroke: #e0ab3d } .asks text { fill: #f0cd83 }
      .good rect { fill: #12301f; stroke: #4fb98a } .good text { fill: #85dab2 }
      .bad rect { fill: #3b1a1b; stroke: #e07a79 } .bad text { fill: #f2b0af }
      .gone rect { fill: #171c24; stroke: #4a5463 } .gone text { fill: #8e9aaa }
    }
"""


def file_of(kind: Kind) -> Path:
    """Return where the picture of a life is."""
    return FOLDER / f"life-of-a-{kind}.svg".replace("a-interrupt", "an-interrupt")


def draw(kind: Kind) -> str:
    """Return the picture of a life.

    Raises:
        ValueError: the table has a row without an arrow, or an arrow has no row.
    """
    picture, steps = PICTURES[kind], LIVES[kind]
    _check(picture, steps)
    parts = [
        *_head(picture),
        *(line for frame in picture.frames for line in _frame(frame)),
        *(line for arrow in picture.arrows for line in _arrow(arrow, steps)),
        *(f'  <circle class="dot" cx="{x}" cy="{y}" r="8"/>' for x, y in picture.dots),
        *(line for name, at in picture.states.items() for line in _state(name, at, steps)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _check(picture: Picture, steps: Sequence[Step]) -> None:
    rows: set[Ends] = {(step.before, step.after) for step in steps}
    drawn = [ends for arrow in picture.arrows for ends in arrow.ends]
    if set(drawn) != rows or len(drawn) != len(rows):
        raise ValueError(f"{picture.title}: rows and arrows differ by {set(drawn) ^ rows}")


def _head(picture: Picture) -> Iterator[str]:
    width, height = picture.size
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="t d">'
    )
    yield f'  <title id="t">{escape(picture.title)}</title>'
    yield f'  <desc id="d">{escape(picture.about)}</desc>'
    yield f"  <style>\n{STYLE}  </style>"
    yield (
        '  <marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        'markerHeight="8" orient="auto"><path class="tip" d="M0 0 L10 5 L0 10 Z"/></marker>'
    )


def _frame(frame: Frame) -> Iterator[str]:
    (x, y), (width, height) = frame.corner, frame.size
    yield f'  <rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="18"/>'
    yield f'  <text class="when" x="{x + 18}" y="{y + height - 14}">{escape(frame.caption)}</text>'


def _state(name: str, at: Point, steps: Sequence[Step]) -> Iterator[str]:
    x, y = at
    is_last = all(step.before != name for step in steps)
    corner = HEIGHT // 2 if is_last else 10
    yield f'  <g class="{TONES.get(name, "asks")}">'
    yield (
        f'    <rect x="{x - WIDTH // 2}" y="{y - HEIGHT // 2}" '
        f'width="{WIDTH}" height="{HEIGHT}" rx="{corner}"/>'
    )
    yield f'    <text class="name" x="{x}" y="{y + 5}" text-anchor="middle">{escape(name)}</text>'
    yield "  </g>"


def _arrow(arrow: Arrow, steps: Sequence[Step]) -> Iterator[str]:
    yield f'  <path class="line" d="{_path(arrow.line)}" marker-end="url(#tip)"/>'
    x, y = arrow.words
    for group in _groups(arrow, steps):
        for line in _lines(group, arrow.wide):
            spans = "".join(
                f'<tspan class="{style}">{escape(text)}</tspan>' for style, text in line
            )
            place = f'x="{x}" y="{y}" text-anchor="{arrow.align}"'
            yield f'  <text xml:space="preserve" {place}>{spans}</text>'
            y += LINE
        y += GAP


def _path(points: Sequence[Point]) -> str:
    """Return a line with round corners."""
    path = "M{} {}".format(*points[0])
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(corner, before), _towards(corner, after)
        path += f" L{near[0]} {near[1]} Q{corner[0]} {corner[1]} {far[0]} {far[1]}"
    return path + " L{} {}".format(*points[-1])


def _towards(start: Point, end: Point) -> Point:
    """Return the point a corner's radius away from one point, on the way to another."""
    distance = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    reach = min(ROUND, distance // 2)
    return (
        start[0] + (end[0] - start[0]) * reach // distance,
        start[1] + (end[1] - start[1]) * reach // distance,
    )


Styled = tuple[str, str]
"""A style, and a text in it."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of an arrow that happen for the same reason. `which`: of several ends, these."""

    which: str
    events: tuple[str, ...]
    when: str


def _groups(arrow: Arrow, steps: Sequence[Step]) -> Iterator[_Group]:
    rows = [step for ends in arrow.ends for step in steps if (step.before, step.after) == ends]
    differ = len(arrow.ends) > 1 and len({step.when for step in rows}) > 1
    for when, same in groupby(rows, key=lambda step: step.when):
        group = list(same)
        events = tuple(dict.fromkeys(step.event for step in group))
        yield _Group(_named(group, arrow) if differ else "", events, when)


def _lines(group: _Group, wide: int) -> Iterator[list[Styled]]:
    """Return the words of a group: an event a line, then `· when`, beside the last if it fits."""
    *others, last = group.events
    for event in others:
        yield [("event", event)]
    line: list[Styled] = [("when", f"{group.which} ")] if group.which else []
    line.append(("event", last))
    if len(group.which) + len(last) + len(group.when) + 4 <= wide:
        yield [*line, ("when", f" · {group.when}")]
        return
    yield line
    yield from ([("when", text)] for text in wrap(f"· {group.when}", wide))


def _named(group: Sequence[Step], arrow: Arrow) -> str:
    """Return which of several ends these rows have: where they begin, or else end."""
    same_start = len({start for start, _ in arrow.ends}) == 1
    names = [step.after if same_start else step.before or "" for step in group]
    return ", ".join(names) + ":"
