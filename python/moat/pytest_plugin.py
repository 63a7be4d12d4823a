# SPDX-License-Identifier: MIT
"""`pytest --moat`: tests of GPU code on a machine without a GPU, where each error that moat finds is a
failure of the test that caused it.

pytest itself becomes the controller: it collects nothing, and starts a worker, a second pytest with the same
arguments under `moat --device=cpu`, which collects and runs the tests and sends what comes of them
(worker.py). A CUDA context that has faulted cannot be used again, and a process can die, so after a test with
errors the rest runs in a new worker. The controller gives pytest the workers' results, so that the terminal,
JUnit and other reports are what they are without moat (controller.py)."""

import os
import sys

import pytest

import moat

_MARKS = ("gpu", "cuda")
# Before pytest adds folders: a worker begins with the same path.
_PATH_START = sys.path[0]


def pytest_addoption(parser):
    group = parser.getgroup("moat", "memory errors of GPU code (moat)")
    group.addoption(
        "--moat",
        action="store_true",
        default=False,
        help="run the tests marked gpu or cuda under moat, on the CPU device; its reports are failures",
    )
    group.addoption(
        "--moat-options",
        metavar="OPTIONS",
        help="options of moat, as on its command line: --moat-options='--mode=pages --leak-check'",
    )
    group.addoption(
        "--moat-all", action="store_true", default=False, help="run all tests, whatever their marks"
    )
    group.addoption("--moat-sarif", metavar="FILE", help="write the errors that moat found as SARIF")
    group.addoption("--moat-json", metavar="FILE", help="write moat's events as JSON Lines")
    parser.addini("moat_options", "options of moat, before those of --moat-options", type="args", default=[])
    parser.addini("moat_marks", "marks of tests that --moat runs", type="args", default=list(_MARKS))


def _refuse_others(option):
    """Raises UsageError for what cannot be combined with --moat."""
    if getattr(option, "numprocesses", None) or getattr(option, "tx", None):
        raise pytest.UsageError(
            "--moat runs the tests one after another: leave out -n of pytest-xdist (or -n 0)"
        )
    if getattr(option, "dist", "no") != "no":
        raise pytest.UsageError("--moat cannot be combined with --dist of pytest-xdist")
    for name in ("usepdb", "trace", "looponfail"):
        if getattr(option, name, False):
            raise pytest.UsageError(
                "--moat runs the tests in another process: leave out --pdb, --trace and -f"
            )
    if getattr(option, "cov_source", None):
        raise pytest.UsageError(
            "--moat runs the tests in another process, which --cov does not see: leave it out"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    for mark in _MARKS:
        config.addinivalue_line("markers", mark + ": needs a GPU, or moat's CPU device (pytest --moat)")
    option = config.option
    from moat import worker

    task = worker.take_task()
    if not option.moat:
        for name in ("moat_options", "moat_all", "moat_sarif", "moat_json"):
            if getattr(option, name):
                raise pytest.UsageError("--{} needs --moat".format(name.replace("_", "-")))
    elif task is not None:
        config.pluginmanager.register(worker.Worker(config, task), "moat_worker")
    else:
        _refuse_others(option)
        from moat import controller

        try:
            found = moat.find_binary()
        except moat.NotFound as why:
            raise pytest.UsageError("--moat: {}".format(why))
        command = controller.Command(found, config, _PATH_START)
        if option.collectonly:
            os.environ.update(command.listing_environment())
            os.execv(command.arguments[0], command.arguments)
        config.pluginmanager.register(controller.Controller(config, command), "moat_controller")
