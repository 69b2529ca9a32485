"""The rule that CI skips nothing, tried on a suite that skips."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
SKIPS = """
    import pytest

    @pytest.mark.skip(reason="no database here")
    def test_marked(): ...

    def test_called():
        pytest.skip("no browser here")

    @pytest.mark.xfail(reason="known")
    def test_known():
        assert False

    def test_fine(): ...
"""
SKIPPED_MODULE = "import pytest\npytest.importorskip('no_such_package')\n"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a folder with this repository's conftest, and nothing of its options."""
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(test_skips=SKIPS, test_module=SKIPPED_MODULE)
    return pytester


def test_a_skip_fails_under_ci(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks, calls and whole modules that skip fail; an expected failure does not."""
    monkeypatch.setenv("CI", "true")
    result = suite.runpytest_subprocess("--continue-on-collection-errors", "-p", "no:cacheprovider")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["xfailed"]) == (1, 1)
    # A skip by mark ends the set-up, one by call the test, one of a module the collection.
    assert outcomes.get("failed", 0) + outcomes["errors"] == 3
    assert "skipped" not in outcomes
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_skip_is_a_skip_elsewhere(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer without a browser still sees green."""
    monkeypatch.delenv("CI", raising=False)
    suite.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(
        passed=1, xfailed=1, skipped=3
    )
