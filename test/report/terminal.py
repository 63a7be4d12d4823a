# SPDX-License-Identifier: MIT
"""terminal.py MOAT FAKE: the command and its program as one job of a terminal. Prints what went wrong."""
import os
import pty
import re
import signal
import sys
import time

moat, fake = sys.argv[1:]
failures = 0


def expect(what, holds):
    global failures
    if not holds:
        failures += 1
        print("not so:", what, job.text.decode(errors="replace"), sep="\n")


class Job:
    """A command that leads a session with a terminal of its own."""

    def __init__(self, *words):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(words[0], words)
        self.text = b""

    def read_until(self, word):
        while word not in self.text:
            try:
                more = os.read(self.terminal, 4096)
            except OSError:
                break
            if not more:
                break
            self.text += more
        return word in self.text

    def type(self, keys):
        os.write(self.terminal, keys)

    def end(self):
        self.read_until(b"never")
        return os.waitpid(self.pid, 0)[1]


# Ctrl-C reaches the program once, from the terminal; the command waits for it and gives its status. Two
# signals that come at the same time are often one, so Ctrl-C is typed many times.
job = Job(moat, "--device=cpu", fake, "start", "count", "end", "exit=4")
expect("the program starts", job.read_until(b"ready"))
for _ in range(25):
    job.type(b"\x03")
    time.sleep(0.02)
job.type(b"\n")
status = job.end()
found = re.search(rb"interrupts: (\d+)\.", job.text)
expect("one Ctrl-C is one signal", found and 1 <= int(found[1]) <= 25)
expect("the program's own status", os.WIFEXITED(status) and os.WEXITSTATUS(status) == 4)

# What somebody else sends to the command reaches the program.
job = Job(moat, "--device=cpu", fake, "start", "count", "end", "exit=4")
expect("the program starts", job.read_until(b"ready"))
os.kill(job.pid, signal.SIGINT)
expect("the signal comes", job.read_until(b"interrupted"))
job.type(b"\n")
status = job.end()
expect("a signal is passed on", b"interrupts: 1." in job.text)

# Ctrl-C ends the program, and the command with it.
job = Job(moat, "--device=cpu", fake, "start", "say=ready", "sleep=20000")
expect("the program starts", job.read_until(b"ready"))
job.type(b"\x03")
status = job.end()
expect("ended by SIGINT", os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT)
expect("its reports are complete", b"without a summary" in job.text)

# Ctrl-Z stops both, a shell's fg wakes both. A shell stands between them and the leader of the session, whose
# group would be an orphan and not stop.
shell = (
    f"set -m; {moat} --device=cpu {fake} start say=ready line say=awake end exit=5; "
    "echo stopped $?; fg; echo ended $?"
)
job = Job("/bin/bash", "-c", shell)
expect("the program starts", job.read_until(b"ready"))
job.type(b"\x1a")
expect("the shell sees it stop", job.read_until(b"stopped 148"))
job.type(b"\n")
expect("the program goes on", job.read_until(b"awake"))
expect("and ends", job.read_until(b"ended 5"))
job.end()

# On a terminal there are colours.
job = Job(moat, "--device=cpu", fake, "start", "error", "end")
status = job.end()
expect("errors are found", os.WIFEXITED(status) and os.WEXITSTATUS(status) == 97)
expect("in colour", b"\x1b[" in job.text)
os.environ["NO_COLOR"] = "1"
job = Job(moat, "--device=cpu", fake, "start", "error", "end")
job.end()
expect("unless NO_COLOR is set", b"SUMMARY" in job.text and b"\x1b[" not in job.text)

sys.exit(failures != 0)
