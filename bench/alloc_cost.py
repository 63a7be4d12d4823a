# SPDX-License-Identifier: MIT
# alloc_cost.py MOAT PROGRAM DEVICE SETS ROUNDS SECONDS: what allocations and frees cost under --mode=api and
# under --mode=check, by size. PROGRAM is bench/alloc_cost.c; SETS sets of processes, one without moat and one
# for each mode, take turns ROUNDS times. No set is begun that would end after SECONDS.
import statistics
import sys
import time

import turns

moat, program, device, sets, rounds, seconds = (
    sys.argv[1:4] + [int(word) for word in sys.argv[4:6]] + [float(sys.argv[6])])
CALLS = {'alloc': 'cuMemAlloc', 'free': 'cuMemFree', 'alloc_async': 'cuMemAllocAsync',
         'free_async': 'cuMemFreeAsync'}
SIZES = {256: '256 B', 4096: '4 KiB', 65536: '64 KiB', 1 << 20: '1 MiB', 16 << 20: '16 MiB',
         64 << 20: '64 MiB'}
MODES = ['off', 'api', 'check']
WARM = 3

games = [(call, size) for call in CALLS for size in SIZES]
figures = {game: [] for game in games}
slowest = {game: [0.0] * len(MODES) for game in games}
begin, longest, done = time.monotonic(), 0, 0
for _ in range(sets):
    started = time.monotonic()
    if done and started + longest > begin + seconds:
        break
    players = [turns.Player([moat, '--device=' + device, '--log-file=/dev/null', '--mode=' + mode, program])
               for mode in MODES]
    turns.begin(players, 'slowest')
    for game in games:
        order = '%s %d' % game
        turns.play(players, order, WARM)
        for player in players:
            player.ask('slowest')
        figures[game].append(turns.play(players, order, rounds))
        for i, player in enumerate(players):
            slowest[game][i] = max(slowest[game][i], float(player.ask('slowest')[-1]))
    for player in players:
        player.close()
    done, longest = done + 1, max(longest, time.monotonic() - started)

print('%d sets of processes, one without moat and one for each mode, take turns: %d times 16 calls of a kind,'
      ' with call stacks of up to 16 frames. Microseconds of one call; average, median and worst are of the'
      ' sets, each by the median of its differences. Slowest: the slowest single call of all.'
      % (done, rounds))
for way, mode in enumerate(MODES[1:], 1):
    print('\n`--mode=%s`:\n' % mode)
    print('| call | size | without moat | with it | times | added: average | median | worst |'
          ' 95% confidence | slowest without | slowest with |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
    for call, size in games:
        data, most = figures[call, size], slowest[call, size]
        added = turns.added(data, 0, way)
        times = turns.plain(data, way) / turns.plain(data, 0)
        us = [ns / 1e3 for ns in (
            turns.plain(data, 0), turns.plain(data, way), statistics.fmean(added), statistics.median(added),
            max(added), *turns.interval(data, 0, way), most[0], most[way])]
        print('| %s | %s | %.2f | %.2f | %.2f |' % (CALLS[call], SIZES[size], *us[:2], times),
              '%.2f | %.2f | %.2f | %.2f to %.2f | %.0f | %.0f |' % tuple(us[2:]))
