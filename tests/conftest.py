"""What every test of this repository lives under."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# One profile for every day: the same examples on every machine, so a red build is red
# again when somebody looks at it. The nightly one searches.
settings.register_profile(
    "ci",
    deadline=None,  # a loaded machine is not a failure
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile(
    "nightly", settings.get_profile("ci"), derandomize=False, max_examples=2000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio only: uvicorn is the server, and it knows no other."""
    return "asyncio"


# Under CI=true a test that is skipped fails: nothing may go missing without being seen.
# A test that is not for every run has a marker and is deselected instead.


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} was skipped, and CI skips nothing. {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost: after pytest marked its xfails
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a test's skip into a failure under CI."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn the skip of a whole module into a failure under CI."""
    report = yield
    _refuse_skip(report)
    return report
