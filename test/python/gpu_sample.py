# SPDX-License-Identifier: MIT
"""Tests as users have them, good and bad. test/python/pytest_plugin.sh knows what must come of each."""

import os
import signal
import unittest

import driver_api
import pytest

FAR = 1 << 30  # words behind a buffer


@pytest.fixture(scope="module")
def device():
    return driver_api.Device()


@pytest.fixture
def buffer(device):
    pointer = device.alloc(64)
    yield pointer
    device.free(pointer)


@pytest.mark.gpu
def test_good(device, buffer):
    device.fill(buffer, 3, 7)
    device.wait()
    assert device.download(buffer, 16)[12] == 7


@pytest.mark.gpu
def test_kernel_leaves_buffer(device, buffer):
    print("printed before the fault")
    device.fill(buffer, FAR, 7)  # nobody waits: the test itself notices nothing


@pytest.mark.gpu
def test_one_behind(device, buffer):
    device.fill(buffer, 16, 7)  # the first word behind 64 bytes


@pytest.mark.cuda
def test_good_after_fault(device, buffer):
    device.fill(buffer, 0, 1)
    device.wait()


@pytest.mark.gpu
def test_fault_raises(device, buffer):
    device.fill(buffer, FAR, 7)
    device.wait()


@pytest.mark.gpu
def test_copy_too_long(device, buffer):
    with pytest.raises(driver_api.Error):
        device.upload(buffer, b"x" * 65)


@pytest.mark.gpu
def test_copy_too_long_again(device, buffer):
    with pytest.raises(driver_api.Error):
        device.upload(buffer, b"x" * 65)


@pytest.mark.gpu
def test_assertion_only(device, buffer):
    assert device.download(buffer, 4) == b"never"


@pytest.mark.gpu
@pytest.mark.xfail(reason="known to leave its buffer")
def test_expected(device, buffer):
    device.fill(buffer, FAR, 7)


@pytest.mark.gpu
def test_dies(device):
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.gpu
def test_double_free_then_dies(device):
    pointer = device.alloc(64)
    device.free(pointer)
    try:
        device.free(pointer)
    except driver_api.Error:
        pass
    os._exit(3)


@pytest.mark.gpu
def test_child(device):
    child = os.fork()
    if not child:
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.fixture
def bad_fixture(device):
    pointer = device.alloc(64)
    yield pointer
    device.free(pointer)
    with pytest.raises(driver_api.Error):
        device.free(pointer)


@pytest.mark.gpu
def test_bad_teardown(bad_fixture):
    pass


@pytest.mark.gpu
@pytest.mark.parametrize("index", [0, 15, FAR])
def test_each(device, buffer, index):
    device.fill(buffer, index, 1)


@pytest.mark.gpu
@pytest.mark.skip(reason="not today")
def test_skipped():
    raise AssertionError


@pytest.mark.gpu
class TestUnit(unittest.TestCase):
    def test_unit_good(self):
        device = driver_api.Device()
        device.free(device.alloc(8))

    def test_unit_bad(self):
        device = driver_api.Device()
        device.fill(device.alloc(64), FAR, 7)


def test_unmarked():
    """Not run without --moat-all."""
