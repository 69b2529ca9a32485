"""Whatever a page does, the streams it gets are judged legal by outsiders."""

import asyncio
import json

import pytest
from hypothesis import assume, given, settings

from tests.properties.judges import Stream, validated, verified
from tests.properties.stories import STORIES, Page, Story, Told, is_story, tell

TERMINAL = {"RUN_FINISHED", "RUN_ERROR"}


def judge(told: Told) -> None:
    """One stream: it begins and ends as it must, and `ag-ui-validate` is silent."""
    types = [event["type"] for event in told.stream]
    assert types[0] == "RUN_STARTED"
    assert types[-1] in TERMINAL
    ends = [each for each in types if each in TERMINAL]
    assert ends in (["RUN_FINISHED"], ["RUN_ERROR"], ["RUN_FINISHED", "RUN_ERROR"])
    assert validated(told.stream, resumed=told.resumed, two_ends=len(ends) == 2) == []


def announced_once(page: Page) -> None:
    """A tool call is announced in one run only, and again where a snapshot restates it."""
    announced = set[str]()
    for told in page.told:
        begun = [e["toolCallId"] for e in told.stream if e["type"] == "TOOL_CALL_START"]
        if all(e["type"] != "MESSAGES_SNAPSHOT" for e in told.stream):
            assert not announced & set(begun)
        announced |= set(begun)


def judge_all(page: Page) -> None:
    """All that can be judged of a story without Node."""
    for told in page.told:
        judge(told)
    announced_once(page)
    assert {status for status, _ in page.refused} <= {409}, page.refused


def all_are_legal(examples: int) -> None:
    """Tell stories and hold their streams against every judge."""
    streams: list[tuple[Story, Stream]] = []

    @given(STORIES)
    @settings(max_examples=examples)
    def stories(story: Story) -> None:
        assume(is_story(story.acts))
        page = asyncio.run(tell(story))
        streams.extend((story, told.stream) for told in page.told)
        judge_all(page)

    stories()
    verdicts = verified([stream for _, stream in streams])
    wrong = [
        (verdict, story, json.dumps(stream))
        for verdict, (story, stream) in zip(verdicts, streams, strict=True)
        if verdict is not None
    ]
    assert not wrong, wrong[0]


def test_every_stream_of_every_story_is_legal() -> None:
    """Random pages, scripts and agents: both outside judges take every stream in silence."""
    all_are_legal(100)


@pytest.mark.nightly
def test_many_more_stories() -> None:
    """The same for many more stories."""
    all_are_legal(3_000)
