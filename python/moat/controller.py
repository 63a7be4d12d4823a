# SPDX-License-Identifier: MIT
"""The pytest that the user sees: starts workers (worker.py), gives their results to pytest, and adds what no
worker could send: that it died, and errors that belong to no test."""

import builtins
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import warnings

import pytest

from moat import saved_log, worker

_CODE = "import sys; sys.path[0] = {!r}; sys.argv[0] = 'pytest'; import pytest; sys.exit(pytest.main())"

_PATIENCE = 10  # seconds for a worker that is to end


class Command:
    """The command line of a worker."""

    def __init__(self, moat, config, path_start):
        self.moat = moat
        self._folder = tempfile.TemporaryDirectory(prefix="moat-pytest-")
        self.logs = []
        options = list(config.getini("moat_options"))
        options += shlex.split(config.option.moat_options or "")
        for option in options:
            if not option.startswith("--"):
                raise pytest.UsageError("--moat-options: {!r} is no option of moat".format(option))
        if not any(option.startswith("--device=") for option in options):
            options.insert(0, "--device=cpu")
        # What finds most is the default; a mode that the user names takes its place.
        if not any(option.startswith(("--mode=", "--tensors", "--no-tensors")) for option in options):
            options.insert(0, "--tensors")
        # Every error counts for its test, and pytest has a status of its own.
        self._fixed = ["--format=json", "--print-limit=0", "--error-exitcode=0"]
        python = [sys.executable, "-c", _CODE.format(path_start)]
        self._program = python + [str(argument) for argument in config.invocation_params.args]
        self._options = options

    @property
    def arguments(self):
        """For --collect-only: moat has nothing to report."""
        return [self.moat] + self._options + ["--mode=off"] + self._program

    def listing_environment(self):
        return {worker.VARIABLE: json.dumps({"fd": -1, "log": os.devnull, "moat": self.moat, "done": []})}

    def start(self, done):
        """Starts a worker for the tests that are not in `done`. Returns its process, the end of the pipe to
        read, and the path of its log."""
        log = os.path.join(self._folder.name, "{}.jsonl".format(len(self.logs) + 1))
        self.logs.append(log)
        reads, writes = os.pipe()
        task = {"fd": writes, "log": log, "moat": self.moat, "done": sorted(done)}
        try:
            process = subprocess.Popen(
                [self.moat]
                + self._options
                + self._fixed
                + ["--log-file=" + log.replace("%", "%%")]
                + self._program,
                env=dict(os.environ, **{worker.VARIABLE: json.dumps(task)}),
                pass_fds=(writes,),
            )
        finally:
            os.close(writes)
        return process, reads, log


class _Pipe:
    """The messages of a worker, until its process has ended and the pipe is empty. A process that a test has
    left behind may keep the pipe open."""

    def __init__(self, process, fd):
        self._process, self._fd, self._rest = process, fd, b""

    def __iter__(self):
        while True:
            ended = self._process.poll() is not None
            if select.select([self._fd], [], [], 0 if ended else 0.05)[0]:
                data = os.read(self._fd, 1 << 16)
                lines = (self._rest + data).split(b"\n")
                self._rest = lines.pop()
                for line in lines:
                    yield json.loads(line)
                if data:
                    continue
                self._process.wait()
                return
            if ended:
                return

    def close(self):
        os.close(self._fd)


def _ending(status):
    if status >= 0:
        return "with status {}".format(status)
    try:
        return "by " + signal.Signals(-status).name
    except ValueError:
        return "by signal {}".format(-status)


class Controller:
    def __init__(self, config, command):
        self._config, self._command = config, command
        self._process = self._pipe = self._log = None
        self._ids, self._done = [], set()
        self._test = None  # the one that runs: its name, location, and the phase that comes next
        self._first = True  # of the workers
        self._more = False  # the worker wants a successor
        self._ended = False  # it has said that it is through
        self._stopped = False  # it has been asked to end
        self._broken = 0  # modules that could not be imported
        self._ran = 0  # tests that were not skipped
        self._events = []  # lines of all workers' logs
        self._errors = self._loose = 0

    # --- one worker -----------------------------------------------------------------------------------------

    def _start(self):
        self._process, fd, path = self._command.start(self._done)
        self._pipe = _Pipe(self._process, fd)
        self._log = saved_log.Log(path)
        self._read, self._more, self._ended, self._test = 0, False, False, None

    def _stop(self):
        """Ends the worker where the user or --maxfail wants no more tests."""
        self._stopped, self._ended, self._more, self._test = True, True, False, None
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGINT)  # pytest then leaves its fixtures
        try:
            self._process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _finish(self):
        """The worker has ended: takes what its log has besides what tests were blamed for."""
        self._pipe.close()
        blamed = self._log.read(until=self._read)
        rest = self._log.read()
        loose = [line for line, event in rest if saved_log.is_error(event)]
        self._events += [line for line, _ in blamed + rest]
        self._errors += len(loose) + sum(saved_log.is_error(event) for _, event in blamed)
        status = self._process.returncode
        if self._test is not None:
            self._blame(loose, status)
        elif loose and not self._stopped:
            self._report_loose("after the tests", saved_log.describe(self._command.moat, loose))
        if not self._ended and self._test is None:
            self._report_loose("process", "the process that runs the tests ended " + _ending(status))
        self._process = None

    def _blame(self, lines, status):
        """The worker died in a test: that test has failed, and the rest needs another worker."""
        nodeid, location, phase = self._test
        text = "the process ended {} in this test".format(_ending(status))
        if lines:
            text = saved_log.describe(self._command.moat, lines) + "\n" + text
        self._log_report(nodeid, location, phase, text)
        self._config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        self._done.add(nodeid)
        self._ended = self._more = True

    def _log_report(self, nodeid, location, phase, text):
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="failed",
            longrepr=text,
            when=phase,
            duration=0.0,
        )
        self._config.hook.pytest_runtest_logreport(report=report)

    def _report_loose(self, what, text):
        """A failure that belongs to no test."""
        self._loose += 1
        nodeid = "moat::{}".format(what) + ("" if self._first else " {}".format(len(self._command.logs)))
        self._log_report(nodeid, ("moat", None, what), "call", text)

    # --- its messages ---------------------------------------------------------------------------------------

    def _on_collectreport(self, message):
        if self._first:
            report = self._decode(message["data"])
            self._broken += report.failed
            self._config.hook.pytest_collectreport(report=report)

    def _on_collected(self, message):
        self._read = message["read"]
        if not self._first:
            return
        self._ids = message["ids"]
        if message["errors"]:
            self._report_loose("collection", message["errors"])
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.stats.setdefault("deselected", []).extend([None] * message["deselected"])
            line = "moat: collected {} of {} tests".format(
                len(self._ids), len(self._ids) + message["deselected"]
            )
            reporter.write_line(line)

    def _on_started(self, message):
        self._test = [message["nodeid"], tuple(message["location"]), "setup"]
        self._config.hook.pytest_runtest_logstart(nodeid=self._test[0], location=self._test[1])

    def _on_report(self, message):
        report = self._decode(message["data"])
        self._read = message["read"]
        if self._test is not None and report.when in ("setup", "call"):
            failed_setup = report.when == "setup" and not report.passed
            self._test[2] = "teardown" if failed_setup or report.when == "call" else "call"
        self._ran += report.when == "call" and not report.skipped
        self._config.hook.pytest_runtest_logreport(report=report)

    def _on_finished(self, message):
        nodeid, location, _ = self._test
        self._config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
        self._done.add(nodeid)
        self._read, self._test = message["read"], None

    def _on_end(self, message):
        self._ended, self._more = True, message["rest"]

    def _on_warning(self, message):
        if not self._first:
            return
        kind = getattr(builtins, message["category"], None) or getattr(
            pytest, message["category"], UserWarning
        )
        kind = kind if isinstance(kind, type) and issubclass(kind, Warning) else UserWarning
        warning = warnings.WarningMessage(kind(message["text"]), kind, message["file"], message["line"])
        location = message["location"] and tuple(message["location"])
        self._config.hook.pytest_warning_recorded.call_historic(
            kwargs=dict(
                warning_message=warning, when=message["when"], nodeid=message["nodeid"], location=location
            )
        )

    def _decode(self, data):
        if isinstance(data.get("longrepr"), list):  # where a test was skipped: JSON has no tuples
            data["longrepr"] = tuple(data["longrepr"])
        return self._config.hook.pytest_report_from_serializable(config=self._config, data=data)

    def _handle(self, message):
        getattr(self, "_on_" + message["kind"])(message)

    # --- pytest's hooks -------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session):
        session.items = []
        self._start()
        self._messages = iter(self._pipe)
        for message in self._messages:
            self._handle(message)
            if message["kind"] == "collected":
                session.testscollected = len(self._ids)
                return True
        if not session.testsfailed:
            ending = _ending(self._process.returncode)
            raise pytest.UsageError("--moat: the process that was to run the tests ended {}".format(ending))
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        while True:
            before = len(self._done)
            for message in self._messages:
                self._handle(message)
                if (session.shouldfail or session.shouldstop) and self._test is None:
                    self._stop()
                    break
            self._process.wait()
            self._finish()
            self._first = False
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            if not self._more or len(self._done) >= len(self._ids):
                break
            if len(self._done) == before:
                self._report_loose("process", "a process that was to run tests has run none")
                break
            self._start()
            self._messages = iter(self._pipe)
        if self._broken and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(
                "{} error{} during collection".format(self._broken, "" if self._broken == 1 else "s")
            )
        return True

    def _watched_nothing(self):
        return self._ran > 0 and not self._sums("watched")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        self._stop()
        option = self._config.option
        if session.exitstatus == 0 and self._watched_nothing():
            session.exitstatus = 98  # as of moat itself
        if option.moat_json:
            with open(option.moat_json, "wb") as file:
                file.write(b"".join(line + b"\n" for line in self._events))
        if option.moat_sarif:
            with open(option.moat_sarif, "w", encoding="utf-8") as file:
                file.write(saved_log.render(self._command.moat, self._events, "sarif"))

    def _sums(self, key):
        """The numbers of all processes, by their label."""
        sums = {}
        for line in self._events:
            for row in json.loads(line).get(key) or []:
                if isinstance(row, dict) and "label" in row:
                    sums[row["label"]] = sums.get(row["label"], 0) + row["value"]
        return {label: value for label, value in sums.items() if value}

    def pytest_terminal_summary(self, terminalreporter):
        write = terminalreporter.write_line
        terminalreporter.section("moat")
        write("{} error{}".format(self._errors, "" if self._errors == 1 else "s"))
        for title, key in (("watched", "watched"), ("not covered", "uncovered")):
            sums = self._sums(key)
            if sums:
                write("{}: {}".format(title, ", ".join("{:,} {}".format(v, k) for k, v in sums.items())))
        if self._watched_nothing():
            write("nothing was watched: no test has made an allocation, transfer or launch")
