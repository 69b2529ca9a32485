"""Where things stand in the pictures of lives. The words come from the tables."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Point: TypeAlias = tuple[int, int]
Ends: TypeAlias = tuple[str | None, str]
"""Where an arrow begins (`None`: where the life begins) and where it ends."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow for all rows between these ends, and where its words begin.

    `words` is the first line's place; lines have at most `wide` characters.
    """

    ends: tuple[Ends, ...]
    line: tuple[Point, ...]
    words: Point
    align: Literal["start", "middle", "end"] = "start"
    wide: int = 60


@dataclass(frozen=True, slots=True)
class Frame:
    """A box around states, with its caption."""

    corner: Point
    size: tuple[int, int]
    caption: str


@dataclass(frozen=True, slots=True)
class Picture:
    """One life: its states by their middle, its arrows, the dots where it begins."""

    title: str
    about: str
    size: tuple[int, int]
    states: dict[str, Point]
    arrows: tuple[Arrow, ...]
    dots: tuple[Point, ...]
    frames: tuple[Frame, ...] = field(default=())


Tone: TypeAlias = Literal["still", "busy", "asks", "good", "bad", "gone"]

TONES: dict[str, Tone] = {
    "queued": "still",
    "waiting": "still",
    "parked": "still",
    "running": "busy",
    "out": "busy",
    "paused": "asks",
    "held": "asks",
    "completed": "good",
    "resolved": "good",
    "made": "good",
    "errored": "bad",
    "failed": "bad",
    "dropped": "gone",
    "voided": "gone",
    "cancelled": "gone",
    "expired": "gone",
}
"""The colour of a state; one that is not named waits for somebody outside."""

TURN = Picture(
    title="The life of a turn",
    about="A turn runs, is paused by a question, waits for the page, is parked, and completes.",
    size=(1240, 690),
    states={
        "queued": (90, 320),
        "running": (465, 160),
        "paused": (885, 160),
        "waiting": (465, 470),
        "parked": (675, 650),
        "completed": (1155, 160),
        "dropped": (90, 530),
    },
    dots=((90, 160), (925, 96)),
    frames=(Frame((282, 64), (680, 476), "open, and its branch is the active one"),),
    arrows=(
        Arrow(((None, "running"),), ((90, 160), (400, 160)), (106, 133), wide=16),
        Arrow(((None, "paused"),), ((925, 96), (925, 138)), (910, 92), "end", wide=48),
        Arrow(((None, "queued"),), ((90, 160), (90, 298)), (102, 208), wide=15),
        Arrow(
            (("queued", "running"),),
            ((155, 320), (246, 320), (246, 174), (400, 174)),
            (163, 340),
            wide=15,
        ),
        Arrow((("queued", "dropped"),), ((90, 342), (90, 508)), (102, 430), wide=22),
        Arrow((("running", "paused"),), ((530, 148), (820, 148)), (675, 137), "middle"),
        Arrow((("paused", "running"),), ((820, 172), (530, 172)), (675, 191), "middle", wide=30),
        Arrow((("running", "waiting"),), ((445, 182), (445, 448)), (432, 224), "end", wide=20),
        Arrow((("waiting", "running"),), ((485, 448), (485, 182)), (498, 254), wide=60),
        Arrow((("waiting", "paused"),), ((530, 458), (870, 458), (870, 182)), (544, 447)),
        Arrow((("paused", "waiting"),), ((900, 182), (900, 482), (530, 482)), (544, 501)),
        Arrow(
            (("paused", "parked"), ("waiting", "parked"), ("running", "parked")),
            ((645, 540), (645, 628)),
            (632, 562),
            "end",
            wide=48,
        ),
        Arrow(
            (("parked", "paused"), ("parked", "waiting"), ("parked", "running")),
            ((705, 628), (705, 540)),
            (718, 562),
            wide=48,
        ),
        Arrow(
            (("running", "completed"),),
            ((465, 138), (465, 36), (1155, 36), (1155, 138)),
            (810, 25),
            "middle",
        ),
        Arrow((("paused", "completed"),), ((950, 160), (1090, 160)), (974, 133), wide=14),
        Arrow((("parked", "completed"),), ((740, 650), (1155, 650), (1155, 182)), (756, 670)),
    ),
)

CALL = Picture(
    title="The life of a call",
    about="A call is open or running, and ends once: completed, errored or voided.",
    size=(1110, 490),
    states={
        "open": (330, 75),
        "running": (330, 325),
        "errored": (810, 200),
        "completed": (1020, 200),
        "voided": (1020, 430),
    },
    dots=((70, 75), (70, 325)),
    arrows=(
        Arrow(((None, "open"),), ((70, 75), (265, 75)), (86, 48), wide=20),
        Arrow(((None, "running"),), ((70, 325), (265, 325)), (86, 298), wide=20),
        Arrow((("open", "running"),), ((330, 97), (330, 303)), (318, 170), "end", wide=28),
        Arrow((("open", "completed"),), ((395, 63), (1020, 63), (1020, 178)), (410, 52)),
        Arrow((("open", "errored"),), ((395, 87), (810, 87), (810, 178)), (410, 107)),
        Arrow((("running", "errored"),), ((395, 313), (810, 313), (810, 222)), (410, 261), wide=70),
        Arrow((("running", "completed"),), ((395, 337), (1020, 337), (1020, 222)), (410, 357)),
        Arrow((("running", "voided"),), ((370, 347), (370, 430), (955, 430)), (410, 419)),
        Arrow(
            (("running", "running"),),
            ((290, 347), (290, 383), (330, 383), (330, 347)),
            (277, 384),
            "end",
            wide=28,
        ),
    ),
)

INTERRUPT = Picture(
    title="The life of an interrupt",
    about="A question is open until somebody answers it, it is given up, or its time is over.",
    size=(980, 250),
    states={
        "open": (310, 125),
        "resolved": (885, 45),
        "cancelled": (885, 125),
        "expired": (885, 205),
    },
    dots=((70, 125),),
    arrows=(
        Arrow(((None, "open"),), ((70, 125), (245, 125)), (86, 98), wide=20),
        Arrow((("open", "resolved"),), ((340, 103), (340, 45), (820, 45)), (390, 34)),
        Arrow((("open", "cancelled"),), ((375, 125), (820, 125)), (390, 114), wide=70),
        Arrow((("open", "expired"),), ((340, 147), (340, 205), (820, 205)), (390, 194)),
    ),
)

DECISION = Picture(
    title="The life of a decision",
    about="A decision waits in line, is out with the worker, may be held, and is made or dropped.",
    size=(1100, 600),
    states={
        "waiting": (290, 290),
        "out": (650, 290),
        "held": (1010, 290),
        "made": (650, 550),
        "dropped": (650, 60),
        "failed": (850, 420),
    },
    dots=((70, 290), (540, 196)),
    arrows=(
        Arrow(((None, "waiting"),), ((70, 290), (225, 290)), (86, 246), wide=20),
        Arrow(((None, "out"),), ((540, 196), (606, 196), (606, 268)), (525, 192), "end", wide=30),
        Arrow((("waiting", "out"),), ((355, 278), (585, 278)), (470, 251), "middle", wide=24),
        Arrow((("out", "waiting"),), ((585, 302), (355, 302)), (368, 322), wide=40),
        Arrow(
            (("waiting", "waiting"),),
            ((235, 312), (235, 348), (265, 348), (265, 312)),
            (222, 336),
            "end",
            wide=20,
        ),
        Arrow((("waiting", "made"),), ((290, 312), (290, 550), (585, 550)), (306, 539)),
        Arrow((("waiting", "dropped"),), ((290, 268), (290, 60), (585, 60)), (306, 32), wide=40),
        Arrow(
            (("out", "out"),),
            ((674, 268), (674, 234), (704, 234), (704, 268)),
            (716, 206),
            wide=52,
        ),
        Arrow((("out", "made"),), ((650, 312), (650, 528)), (637, 446), "end", wide=40),
        Arrow((("out", "dropped"),), ((650, 268), (650, 82)), (663, 132), wide=40),
        Arrow((("out", "held"),), ((715, 290), (945, 290)), (830, 310), "middle", wide=34),
        Arrow((("out", "failed"),), ((686, 312), (686, 420), (785, 420)), (700, 384)),
        Arrow((("held", "made"),), ((1010, 312), (1010, 550), (715, 550)), (730, 522), wide=44),
        Arrow((("held", "dropped"),), ((1010, 268), (1010, 60), (715, 60)), (730, 49)),
    ),
)

PICTURES: dict[str, Picture] = {
    "turn": TURN,
    "call": CALL,
    "interrupt": INTERRUPT,
    "decision": DECISION,
}
"""The picture of each kind."""
