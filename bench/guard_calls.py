# SPDX-License-Identifier: MIT
# guard_calls.py MOAT CALLS DEVICE SETS ROUNDS: what the guard adds to calls of the driver API
# (bench/guard_calls.c is CALLS), on the device gpu or cpu, in SETS sets of processes that take turns ROUNDS
# times. Tables go to standard output. guard_calls.py ... FILE: lines CALL AVERAGE LOW HIGH, in nanoseconds,
# without stacks, go to FILE too.
import statistics
import sys

import turns

moat, calls, device, sets, rounds = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
NAMES = ['launch', 'copy_async', 'copy', 'memset_async', 'alloc_free', 'alloc_free_in_order']
OFF, BARE, STACKS = range(3)
WAYS = [['--mode=off'], ['--mode=api', '--stack-depth=0'], ['--mode=api']]
WARM = 5


def measure(ways, live, how_often):
    figures = {name: [] for name in NAMES}
    for _ in range(how_often):
        alone = [moat, '--device=' + device, '--log-file=/dev/null']
        players = [turns.Player(alone + way + [calls, str(live)])
                   for way in ways]
        turns.begin(players, NAMES[0])
        for name in NAMES:
            turns.play(players, name, WARM)
            figures[name].append(turns.play(players, name, rounds))
        for player in players:
            player.close()
    return figures


def table(title, figures, way):
    print('\n%s\n' % title)
    print('| call | without moat ns | average added ns | median | worst | 95% confidence |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for name, data in figures.items():
        added = turns.added(data, OFF, way)
        print('| %s | %.0f | %.0f | %.0f | %.0f | %.0f to %.0f |' % (
            (name, turns.plain(data, OFF), statistics.fmean(added), statistics.median(added), max(added)) +
            turns.interval(data, OFF, way)))


few = measure(WAYS, 0, sets)
many = measure(WAYS[:STACKS], 100000, max(sets // 3, 1))
print('%d sets of processes, one without moat and one for each way with it, take turns: %d times 400 calls'
      ' each. Average, median and worst are of the sets, each by the median of its differences. An'
      ' allocation and its free are two calls.' % (sets, rounds))
table('Without call stacks (`--stack-depth=0`):', few, BARE)
table('With stacks of up to 16 frames, the default:', few, STACKS)
table('Without call stacks, 100,000 buffers alive, %d sets:' % max(sets // 3, 1), many, BARE)
if len(sys.argv) > 6:
    with open(sys.argv[6], 'w') as f:
        for name, data in few.items():
            print(name, statistics.fmean(turns.added(data, OFF, STACKS)),
                  *turns.interval(data, OFF, STACKS), file=f)
