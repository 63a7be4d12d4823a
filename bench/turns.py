# SPDX-License-Identifier: MIT
# Programs that differ only in the tool that watches them, measured in turns: all of them live at once, each
# waits for orders, and one at a time does a short piece of work while the others are stopped. What a busy
# machine does within a second it does to all.
#
#   players = [turns.Player(['app', 'serve']), turns.Player(['moat', 'app', 'serve'])]
#   rounds = turns.play(players, 'launch', 60)     [[alone, watched], ...]
#
# Memory lies elsewhere in every process, so several sets of processes say more than one. The statistics below
# take a list of sets, each a list of rounds.
import atexit
import os
import random
import signal
import statistics
import subprocess
import sys
import time

SAMPLES = 1000
LEAST = 10
players_alive = set()


# A stopped process would wait for ever.
@atexit.register
def end_all():
    for player in players_alive:
        player.signal(signal.SIGKILL)


signal.signal(signal.SIGTERM, lambda *_: sys.exit('turns.py: ended by a signal'))


class Player:
    # It answers each order, a line, with a line, and exits when there are no more. In a game the last word of
    # an answer is the result. environment: added to ours.
    def __init__(self, command, environment=None):
        self.command = command
        # A group of its own: signals reach all processes that it starts.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1, start_new_session=True,
                                        env=dict(os.environ, **(environment or {})))
        players_alive.add(self)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def ask(self, order):
        try:
            self.process.stdin.write(order + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail()
        return self.listen()

    def listen(self):
        line = self.process.stdout.readline()
        if not line:
            self.fail()
        return line.split()

    def fail(self):
        sys.exit('turns.py: %s has ended with status %s' % (' '.join(self.command), self.process.wait()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        players_alive.discard(self)


# Before the first game: each answers once, one after the other, before any is stopped. A program that is
# stopped while it starts may hold what the others wait for, such as the lock of the driver's cache of
# compiled code.
def begin(players, order):
    for player in players:
        player.ask(order)


# Plays rounds, until the time `until`; at least enough for a median.
def play(players, order, rounds, until=None):
    done = []
    for player in players:
        player.signal(signal.SIGSTOP)
    for i in range(rounds):
        if until and i >= LEAST and time.monotonic() > until:
            break
        row = [0.0] * len(players)
        # A process finds the device and the caches as the previous one left them: each follows each other
        # equally often.
        for j in range(len(players)):
            player = players[(i + j) % len(players)]
            player.signal(signal.SIGCONT)
            row[(i + j) % len(players)] = float(player.ask(order)[-1])
            player.signal(signal.SIGSTOP)
        done.append(row)
    for player in players:
        player.signal(signal.SIGCONT)
    return done


# What way b adds to way a: the median of each set's differences, or of their shares of a.
def added(sets, a, b, share=False):
    return [statistics.median((row[b] - row[a]) / (row[a] if share else 1) for row in rounds)
            for rounds in sets]


# The 95% interval of the mean of these medians, by drawing sets and then rounds.
def interval(sets, a, b, share=False):
    rng = random.Random(1)
    means = []
    for _ in range(SAMPLES):
        drawn = [rng.choices(rounds, k=len(rounds)) for rounds in rng.choices(sets, k=len(sets))]
        means.append(statistics.fmean(added(drawn, a, b, share)))
    means.sort()
    return means[int(SAMPLES * 0.025)], means[int(SAMPLES * 0.975)]


def plain(sets, a):
    return statistics.median(row[a] for rounds in sets for row in rounds)
