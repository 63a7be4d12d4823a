# SPDX-License-Identifier: MIT
"""The pytest that runs tests under moat, and sends to the controller what comes of them: a line of JSON for
each event, through a pipe. The controller's task comes in the environment (MOAT_PYTEST)."""

import json
import os

import pytest

from moat import device_state, saved_log

VARIABLE = "MOAT_PYTEST"
# What the controller writes itself: names of options, with the value that turns each off.
_FILES = {"xmlpath": None, "htmlpath": None, "report_log": None, "json_report": False}


def take_task():
    """Returns the controller's task, or None if this process is no worker. Processes that the tests start do
    not see it."""
    text = os.environ.pop(VARIABLE, None)
    return None if text is None else json.loads(text)


class Worker:
    def __init__(self, config, task):
        self._config = config
        self._moat = task["moat"]
        self._log = saved_log.Log(task["log"])
        self._marks = set(config.getini("moat_marks"))
        self._done = set(task["done"])
        self._deselected = 0
        self._uses_cuda = False
        self._useless = False  # the rest of the tests needs another process
        self._dead = None  # the error of a context that cannot be used any more
        self._fd = task["fd"]
        self._lists = self._fd < 0  # --collect-only: prints for the user, there is no controller
        if self._lists:
            return
        os.set_inheritable(self._fd, False)
        for name, off in _FILES.items():
            if hasattr(config.option, name):
                setattr(config.option, name, off)

    def _send(self, kind, **fields):
        if self._lists:
            return
        line = json.dumps(dict(fields, kind=kind), default=str).encode() + b"\n"
        while line:
            line = line[os.write(self._fd, line) :]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session):
        """The controller's terminal shows the results; what tests print with -s still appears."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and not self._lists:
            reporter._tw._file = open(os.devnull, "w")  # pylint: disable=consider-using-with

    # --- collection -----------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        if config.option.moat_all:
            return
        marked, others = [], []
        for item in items:
            names = {mark.name for mark in item.iter_markers()}
            (marked if names & self._marks else others).append(item)
        if others:
            items[:] = marked
            config.hook.pytest_deselected(items=others)

    def pytest_deselected(self, items):
        self._deselected += len(items)

    def pytest_collectreport(self, report):
        if not report.passed:
            self._send_report("collectreport", report)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session):
        errors, _ = self._new_errors()
        text = saved_log.describe(self._moat, errors) if errors else None
        ids = [item.nodeid for item in session.items]
        self._send("collected", ids=ids, deselected=self._deselected, errors=text, read=self._log.offset)

    # --- running --------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if self._lists:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            self._send("end", rest=False)
            return True
        items = [item for item in session.items if item.nodeid not in self._done]
        for item, following in zip(items, items[1:] + [None]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._send("finished", nodeid=item.nodeid, read=self._log.offset)
            if self._useless or session.shouldfail or session.shouldstop:
                break
        rest = self._useless and not (session.shouldfail or session.shouldstop)
        self._send("end", rest=rest)
        return True

    def pytest_runtest_logstart(self, nodeid, location):
        self._send("started", nodeid=nodeid, location=location)

    def pytest_runtest_logreport(self, report):
        self._send_report("report", report)

    def _send_report(self, kind, report):
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._send(kind, data=data, read=self._log.offset)

    def pytest_warning_recorded(self, warning_message, when, nodeid, location):
        self._send(
            "warning",
            text=str(warning_message.message),
            category=warning_message.category.__name__,
            file=warning_message.filename,
            line=warning_message.lineno,
            when=when,
            nodeid=nodeid,
            location=location,
        )

    # --- errors ---------------------------------------------------------------------------------------------

    def _new_errors(self):
        """Waits for the device. Returns the lines of errors that were reported since the last call, and the
        error of a context that cannot be used any more, or None."""
        lines = self._log.read()
        me = os.getpid()
        self._uses_cuda |= any(event.get("pid") == me for _, event in lines)
        dead = device_state.synchronize() if self._uses_cuda else None
        lines += self._log.read()
        return [line for line, event in lines if saved_log.is_error(event)], dead

    def _failure(self):
        """Returns what failed on the device since the last call, or None."""
        errors, dead = self._new_errors()
        first, self._dead = self._dead is None, dead
        self._useless = bool(self._useless or errors or dead)
        if errors:
            return saved_log.describe(self._moat, errors)
        if dead and first:
            return "moat: {}: the test has left a CUDA context that cannot be used any more".format(dead)
        return None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Each phase of a test ends here. A phase that has raised nothing fails with moat's text; another
        keeps its exception, and the text follows it. What fixtures raise because the context is dead is no
        failure of its own."""
        consequence = call.excinfo if call.when == "teardown" and self._dead else None
        if consequence is not None:
            call.excinfo = None
        text = self._failure()
        failure = None
        if text and (call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception)):
            try:
                pytest.fail(text, pytrace=False)
            except pytest.fail.Exception:
                failure = call.excinfo = pytest.ExceptionInfo.from_current()
        outcome = yield
        report = outcome.get_result()
        if text and call.excinfo is not failure:
            _append(report, text)
        if consequence is not None:
            report.sections.append(("teardown after the fault", consequence.exconly()))


def _append(report, text):
    """Adds moat's text to a report that says something else already, where JUnit's file has it too."""
    if hasattr(report.longrepr, "addsection"):
        report.longrepr.addsection("moat", text)
    elif isinstance(report.longrepr, str):
        report.longrepr += "\n" + text
    else:
        report.sections.append(("moat", text))
