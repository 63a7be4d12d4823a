# SPDX-License-Identifier: MIT
# canary_run.py ROWS LABEL NAME COMMAND...: runs a command and appends lines to the file ROWS, separated by tabs: LABEL, NAME,
# what was measured, a number:
#   wall    seconds of the whole command
#   work    seconds that the program says its work took ("seconds: S", programs of the suite with PROGRAM_TIME set)
#   faults  page faults of the CPU, of the command and all it waited for
# A command that fails, or of which moat reports an error, gives a line `failed` with its status instead; 77: `skipped`.
import os
import re
import resource
import subprocess
import sys
import time

rows, label, name, *command = sys.argv[1:]
start = time.monotonic()
try:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                          env=dict(os.environ, PROGRAM_TIME='1'))
    status, said = done.returncode, done.stdout.decode(errors='replace')
except subprocess.TimeoutExpired:
    status, said = 124, 'too slow'
wall = time.monotonic() - start
measured = {}
if status == 77:
    measured['skipped'] = status
elif status != 0 or 'ERROR: moat' in said:
    measured['failed'] = status
    print(f'canary_run.py: {label} {name}: status {status}: {said.strip().splitlines()[-1:]}', file=sys.stderr)
else:
    measured['wall'] = wall
    measured['faults'] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    work = re.findall(r'^seconds: ([0-9.]+)$', said, re.M)
    if work:
        measured['work'] = work[-1]
with open(rows, 'a') as out:
    for what, value in measured.items():
        print(label, name, what, value, sep='\t', file=out)
