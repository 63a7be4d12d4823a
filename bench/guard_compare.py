# SPDX-License-Identifier: MIT
# guard_compare.py MOAT OTHER CALLS DEVICE SETS ROUNDS: what calls of the driver API cost under two builds of
# moat, the commands MOAT and OTHER (bench/guard_calls.c is CALLS), on the device gpu or cpu. Processes of
# both builds, and one without moat, live side by side in SETS sets and take turns ROUNDS times. Tables go to
# standard output.
import statistics
import sys

import turns

moat, other, calls, device, sets, rounds = sys.argv[1:5] + [int(word) for word in sys.argv[5:7]]
NAMES = ['launch', 'copy_async', 'copy', 'memset_async', 'alloc_free', 'alloc_free_in_order']
OFF, BEFORE, NOW = range(3)
WARM = 5


def player(command, mode):
    return turns.Player([command, '--device=' + device, '--log-file=/dev/null', '--mode=' + mode, calls, '0'])


def measure(mode):
    figures = {name: [] for name in NAMES}
    for _ in range(sets):
        players = [player(moat, 'off'), player(other, mode), player(moat, mode)]
        turns.begin(players, NAMES[0])
        for name in NAMES:
            turns.play(players, name, WARM)
            figures[name].append(turns.play(players, name, rounds))
        for one in players:
            one.close()
    return figures


def table(mode, figures):
    print('\n`--mode=%s`:\n' % mode)
    print('| call | without moat ns | added before | added now | now - before: average | median | worst |'
          ' 95% confidence |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
    for name, data in figures.items():
        more = turns.added(data, BEFORE, NOW)
        print('| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f to %.0f |' % (
            (name, turns.plain(data, OFF), statistics.fmean(turns.added(data, OFF, BEFORE)),
             statistics.fmean(turns.added(data, OFF, NOW)), statistics.fmean(more),
             statistics.median(more), max(more)) +
            turns.interval(data, BEFORE, NOW)), flush=True)


print('%d sets of processes, one without moat and one for each build, take turns: %d times 400 calls each.'
      ' Nanoseconds of one call; average, median and worst are of the sets, each by the median of its'
      ' differences. An allocation and its free are two calls.'
      % (sets, rounds))
for mode in ['api', 'canary', 'pages']:
    table(mode, measure(mode))
