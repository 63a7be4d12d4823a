# SPDX-License-Identifier: MIT
# launch_cost.py MOAT PROGRAM DEVICE SETS ROUNDS MODE SECONDS: what --mode=check adds to a launch, over
# --mode=pages, whose layout it has, or --mode=fence over --mode=api. PROGRAM is bench/launch_cost.c; SETS
# sets of processes take turns ROUNDS times. No set is begun that would end after SECONDS.
import statistics
import sys
import time

import turns

moat, program, device, sets, rounds, mode, seconds = (
    sys.argv[1:4] + [int(word) for word in sys.argv[4:6]] + [sys.argv[6], float(sys.argv[7])])
NAMES = {'empty': 'a kernel without accesses',
         'many': 'the same with ten pointers',
         'proved': '`c[i] = a[i] + b[i]`, `i < n`, proved and remembered',
         'evaluated': 'the same, another `n` each time: evaluated',
         'in_part': '`c[i] = b[a[i]]`: %s' % ('proved in part' if mode == 'check' else 'not proved')}
BASE = {'check': 'pages', 'fence': 'api'}[mode]
PLAIN, ON, OFF, UNCOVERED = range(4)
WAYS = [['--mode=' + BASE], ['--mode=' + mode], ['--mode=' + mode, '--proofs=off'],
        ['--mode=' + mode, '--kernel-name=^none of them$', '--uncovered=allow']]
TABLES = [('With proofs:', ON, NAMES), ('Without proofs (`--proofs=off`):', OFF, NAMES),
          ('Kernels that are not covered, as those without PTX (`--kernel-name`):', UNCOVERED,
           ('empty', 'many'))]
WARM = 5

figures = {name: [] for name in NAMES}
# Of each set, for each way: the 99th percentile of the launches in all of its turns.
tails = {name: [] for name in NAMES}
begin, longest, done = time.monotonic(), 0, 0
for _ in range(sets):
    started = time.monotonic()
    if done and started + longest > begin + seconds:
        break
    players = [turns.Player([moat, '--device=' + device, '--log-file=/dev/null'] + way + [program])
               for way in WAYS]
    turns.begin(players, 'empty')
    for name in NAMES:
        turns.play(players, name, WARM)
        for player in players:
            player.ask('forget')
        figures[name].append(turns.play(players, name, rounds))
        tails[name].append([float(player.ask('99')[-1]) for player in players])
    for player in players:
        player.close()
    done, longest = done + 1, max(longest, time.monotonic() - started)

# On the CPU device one launch in a hundred wakes its threads, which takes far longer.
tailed = device == 'gpu'
print('%d sets of processes, one for each way, take turns: %d times 64 launches each, after 64 that'
      ' are not timed; the time of a turn is that of its median launch. Average, median and worst are of the'
      ' sets, each by the median of its differences. Where nothing else is said, a launch has three pointers.'
      % (done, rounds) +
      (' 99 %: the 99th percentile of all launches in the turns of a set, and what the mode adds to it, by'
       ' the median of the sets.' if tailed else ''))
for title, way, names in TABLES:
    print('\n%s\n' % title)
    print('| launch | under `--mode=%s` ns | average added ns | median | worst | 95%% confidence |%s' % (
        BASE, ' under `--mode=%s` 99 %% ns | added at 99 %% |' % BASE if tailed else ''))
    print('| --- | ---: | ---: | ---: | ---: | ---: |%s' % (' ---: | ---: |' if tailed else ''))
    for name in names:
        added = turns.added(figures[name], PLAIN, way)
        print('| %s | %.0f | %.0f | %.0f | %.0f | %.0f to %.0f |' % (
            (NAMES[name], turns.plain(figures[name], PLAIN), statistics.fmean(added),
             statistics.median(added), max(added)) + turns.interval(figures[name], PLAIN, way)) +
              (' %.0f | %.0f |' % (statistics.median(one[PLAIN] for one in tails[name]),
                                   statistics.median(one[way] - one[PLAIN] for one in tails[name]))
               if tailed else ''))
