# SPDX-License-Identifier: MIT
"""Builds wheels of the Python package with Python's own library, so that nothing has to be installed for it.

`pip install ./python` (PEP 517) makes a wheel without binaries: moat is then looked for on PATH. `python3
moat_wheel.py FOLDER VERSION [NATIVE]` makes one with the files of NATIVE, a folder as `make dist` packs it,
in moat/native, for machines with the glibc that these files need or a newer one. The same input gives the
same file."""

import base64
import hashlib
import os
import re
import stat
import sys
import zipfile

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ENTRY_POINTS = "[console_scripts]\nmoat = moat.__main__:main\n\n[pytest11]\nmoat = moat.pytest_plugin\n"
_SUMMARY = "finds memory errors in GPU programs, also on machines that have no GPU"
_TIME = (1980, 1, 1, 0, 0, 0)


def _version():
    """The version stands in the Makefile, or in PKG-INFO where the package was copied out of the tree."""
    for name, pattern in (("../Makefile", r"^VERSION := (\S+)"), ("PKG-INFO", r"^Version: (\S+)")):
        try:
            with open(os.path.join(_ROOT, name), encoding="utf-8") as file:
                found = re.search(pattern, file.read(), re.M)
        except OSError:
            continue
        if found:
            return found.group(1)
    raise SystemExit("moat_wheel: no version: neither ../Makefile nor PKG-INFO has one")


def _metadata(version):
    return (
        "Metadata-Version: 2.1\nName: moat\nVersion: {}\nSummary: {}\nLicense: MIT\nRequires-Python: >=3.8\n"
        "Classifier: Framework :: Pytest\n"
    ).format(version, _SUMMARY)


def _needed_glibc(folder):
    """The newest version of glibc's symbols that an ELF file of the folder refers to."""
    newest = (2, 5)
    for path in _files(folder):
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
            file.seek(0)
            for major, minor in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", file.read()):
                newest = max(newest, (int(major), int(minor)))
    return newest


def _machine(native):
    with open(os.path.join(native, "bin", "moat"), "rb") as file:
        header = file.read(20)
    names = {62: "x86_64", 183: "aarch64"}
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in names:
        raise SystemExit("moat_wheel: bin/moat is no program for a machine that has a name in wheels")
    return names[machine]


def _platform(native):
    if native is None:
        return "any"
    return "manylinux_{}_{}_{}".format(*_needed_glibc(native), _machine(native))


def _files(folder):
    for top, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(top, name)


class _Wheel:
    """A wheel that is being written. Its list of files, RECORD, comes last."""

    def __init__(self, path, info):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self._info = info
        self._record = []

    def add(self, name, data, executable=False):
        if isinstance(data, str):
            data = data.encode()
        entry = zipfile.ZipInfo(name, _TIME)
        entry.create_system = 3  # Unix: the permissions count
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append("{},sha256={},{}\n".format(name, digest, len(data)))

    def add_folder(self, folder, to):
        for path in _files(folder):
            if os.path.islink(path):
                raise SystemExit("moat_wheel: {} is a link, which a wheel cannot have".format(path))
            with open(path, "rb") as file:
                name = os.path.join(to, os.path.relpath(path, folder))
                self.add(name, file.read(), os.stat(path).st_mode & 0o100)

    def close(self):
        name = self._info + "/RECORD"
        self.add(name, "".join(self._record) + name + ",,\n")
        self._zip.close()


def _write(folder, version, native=None, editable=False):
    tag = "py3-none-" + _platform(native)
    name = "moat-{}-{}.whl".format(version, tag)
    info = "moat-{}.dist-info".format(version)
    os.makedirs(folder, exist_ok=True)
    wheel = _Wheel(os.path.join(folder, name), info)
    if editable:
        wheel.add("__editable__.moat.pth", _ROOT + "\n")
    else:
        package = os.path.join(_ROOT, "moat")
        for path in _files(package):
            if path.endswith(".py"):
                with open(path, "rb") as file:
                    wheel.add("moat/" + os.path.relpath(path, package), file.read())
    if native is not None:
        wheel.add_folder(native, "moat/native")
    pure = "true" if native is None else "false"
    wheel.add(info + "/METADATA", _metadata(version))
    wheel.add(
        info + "/WHEEL",
        "Wheel-Version: 1.0\nGenerator: moat_wheel\nRoot-Is-Purelib: {}\nTag: {}\n".format(pure, tag),
    )
    wheel.add(info + "/entry_points.txt", _ENTRY_POINTS)
    wheel.close()
    return name


# --- what pip calls -----------------------------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, _version())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, _version(), editable=True)


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit(
        "moat_wheel: there is no source package of the Python part alone: use the moat repository"
    )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        raise SystemExit("usage: moat_wheel.py FOLDER VERSION [NATIVE]")
    print(os.path.join(sys.argv[1], _write(*sys.argv[1:])))
