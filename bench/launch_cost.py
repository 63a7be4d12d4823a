# SPDX-License-Identifier: MIT
# launch_cost.py MOAT PROGRAM DEVICE SETS ROUNDS MODE: what a mode adds to a launch: check over --mode=pages,
# whose layout it has, fence over --mode=api. PROGRAM is bench/launch_cost.c; SETS sets of processes take
# turns ROUNDS times.
import statistics
import sys

import turns

moat, program, device, sets, rounds = sys.argv[1:4] + [int(word) for word in sys.argv[4:6]]
NAMES = {'empty': 'a kernel without accesses',
         'proved': '`c[i] = a[i] + b[i]`, `i < n`, proved and remembered',
         'evaluated': 'the same, another `n` each time: evaluated',
         'in_part': '`c[i] = b[a[i]]`: %s' % ('proved in part' if sys.argv[6] == 'check' else 'not proved')}
BASE, ON, OFF = range(3)
mode = sys.argv[6]
base = {'check': 'pages', 'fence': 'api'}[mode]
WAYS = [['--mode=' + base], ['--mode=' + mode], ['--mode=' + mode, '--proofs=off']]
WARM = 5

figures = {name: [] for name in NAMES}
for _ in range(sets):
    players = [turns.Player([moat, '--device=' + device, '--log-file=/dev/null'] + way + [program])
               for way in WAYS]
    turns.begin(players, 'empty')
    for name in NAMES:
        turns.play(players, name, WARM)
        figures[name].append(turns.play(players, name, rounds))
    for player in players:
        player.close()

print('%d sets of processes, one for each way, take turns: %d times 64 launches each. Average, median and'
      ' worst are of the sets, each by the median of its differences. Three pointers are looked up for each'
      ' launch.' % (sets, rounds))
for title, way in (('With proofs:', ON), ('Without proofs (`--proofs=off`):', OFF)):
    print('\n%s\n' % title)
    print('| launch | under `--mode=%s` ns | average added ns | median | worst | 95%% confidence |' % base)
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for name, what in NAMES.items():
        added = turns.added(figures[name], BASE, way)
        print('| %s | %.0f | %.0f | %.0f | %.0f | %.0f to %.0f |' % (
            (what, turns.plain(figures[name], BASE), statistics.fmean(added), statistics.median(added),
             max(added)) + turns.interval(figures[name], BASE, way)))
