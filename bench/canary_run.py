# SPDX-License-Identifier: MIT
# canary_run.py ROWS LABEL NAME COMMAND...: runs a command and appends lines to the file ROWS, separated by
# tabs: LABEL, NAME, what was measured, a number:
#   wall    seconds of the whole command
#   work    seconds that the program's work took ("seconds: S", programs of the suite with PROGRAM_TIME set)
#   faults  page faults of the CPU, of the command and all it waited for
# UM_FAULTS_COUNTER=FILE, a library made of um_faults.c: instead of all that
#   managed_cpu, managed_gpu  page faults in managed memory, of the CPU and of the GPU
#   managed_none              why there are none
# A command that fails, or for which moat reports an error, gives a line `failed` with its status instead; 77:
# `skipped`.
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

rows, label, name, *command = sys.argv[1:]
counter = os.environ.get('UM_FAULTS_COUNTER')
told = tempfile.NamedTemporaryFile()
environment = dict(os.environ, PROGRAM_TIME='1')
if counter:
    environment.update(CUDA_INJECTION64_PATH=counter, CUPTI_WATCH=told.name)


def managed_faults():
    # Each process that started the driver has a line.
    lines = [line.split(maxsplit=1) for line in told.read().decode(errors='replace').splitlines()]
    counts = [line[1].split() for line in lines if line[0] == 'faults']
    if counts:
        return {'managed_cpu': sum(int(c[0]) for c in counts), 'managed_gpu': sum(int(c[1]) for c in counts)}
    return {'managed_none': lines[-1][1] if lines else 'the driver has not loaded the counter'}


start = time.monotonic()
try:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=30 if counter else 600, env=environment)
    status, said = done.returncode, done.stdout.decode(errors='replace')
except subprocess.TimeoutExpired:
    status, said = 124, 'too slow'
wall = time.monotonic() - start
measured = {}
if counter:
    measured = managed_faults() if status == 0 else {'managed_none': f'status {status}'}
elif status == 77:
    measured['skipped'] = status
elif status != 0 or 'ERROR: moat' in said:
    measured['failed'] = status
    print(f'canary_run.py: {label} {name}: status {status}: {said.strip().splitlines()[-1:]}',
          file=sys.stderr)
else:
    measured['wall'] = wall
    measured['faults'] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    work = re.findall(r'^seconds: ([0-9.]+)$', said, re.M)
    if work:
        measured['work'] = work[-1]
with open(rows, 'a') as out:
    for what, value in measured.items():
        print(label, name, what, value, sep='\t', file=out)
