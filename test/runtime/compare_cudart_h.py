# SPDX-License-Identifier: MIT
"""Compares src/runtime with a CUDA toolkit. Called by compare_cudart_h.sh.

The toolkit's side is compiled as C++, where a structure goes by its name alone, as all of ours do."""

import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'driver'))

import cheader  # noqa: E402

HEADERS = ['cuda_runtime_api.h', 'cuda_profiler_api.h', 'cuda_gl_interop.h', 'cuda_egl_interop.h',
           'cuda_vdpau_interop.h']

# Graphics headers are rarely installed where CUDA is; these stand for them.
STAND_INS = {
    'GL/gl.h': 'typedef unsigned int GLuint, GLenum;',
    'EGL/egl.h': 'typedef int EGLint;',
    'EGL/eglext.h': 'typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;',
    'vdpau/vdpau.h': 'typedef unsigned int VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpStatus;\n'
                     'typedef VdpStatus VdpGetProcAddress(VdpDevice, unsigned int, void **);',
}

PROBE = '''
#include <stddef.h>
#include <stdio.h>
#define CONSTANT(x) printf("value of " #x ": %lld\\n", (long long)(x));
#define TYPE(x) printf("size and alignment of " #x ": %zu %zu\\n", sizeof(x), __alignof__(x));
#define FIELD(x, y) printf("offset and size of " #x "." #y ": %zu %zu\\n", offsetof(x, y), \\
                           sizeof(((x *)0)->y));
int main(void)
{
'''

failures = []
counts = {}


def fail(message):
    failures.append(message)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def contents(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def same_set(kind, ours, theirs):
    for name in sorted(set(theirs) - set(ours)):
        fail(f'{kind} {name}: in the toolkit, not in src/runtime')
    for name in sorted(set(ours) - set(theirs)):
        fail(f'{kind} {name}: in src/runtime, not in the toolkit')


class Comparison:
    def __init__(self, src, toolkit, work):
        self.src, self.toolkit, self.work = src, toolkit, work
        for name, text in STAND_INS.items():
            write(f'{work}/include/{name}', text + '\n')
        self.our_flags = ['-I', src]
        self.their_flags = ['-I', f'{work}/include', '-I', f'{toolkit}/include', '-w']
        self.their_text = '#include <vdpau/vdpau.h>\n' + ''.join(f'#include <{name}>\n' for name in HEADERS)
        self.types_text = contents(f'{src}/runtime/cudart_types.h')
        self.calls_text = contents(f'{src}/runtime/runtime_calls.def')
        self.rows = re.findall(r'^CALL\((\w+), ([\w *]+),\s*\((.*?)\)\)$', self.calls_text, re.M | re.S)
        write(f'{work}/ours.c', '#include "runtime/cudart_types.h"\n')
        files = {os.path.realpath(f'{src}/{name}')
                 for name in ('runtime/cudart_types.h', 'driver/cudart_errors.def')}
        self.ours = cheader.read(os.environ['CC'], self.our_flags, f'{work}/ours.c',
                                 lambda path: os.path.realpath(path) in files)
        write(f'{work}/theirs.cc', self.their_text + '#include <cuda.h>\n')
        self.theirs = output('g++', '-E', '-P', *self.their_flags, f'{work}/theirs.cc')

    def probe(self, compiler, name, text, flags, lines):
        write(f'{self.work}/{name}', text + PROBE + '\n'.join(lines) + '\nreturn 0;\n}\n')
        command = [compiler, '-w', *flags, f'{self.work}/{name}', '-o', f'{self.work}/probe']
        subprocess.run(command, check=True)
        return output(f'{self.work}/probe').splitlines()

    def values(self):
        """Sizes of types, places of fields, values of constants."""
        # What is incomplete, or a function, has no size; the rest of graphics is only passed on.
        types = [x for x in self.ours.typedefs
                 if re.match(r'cuda|dim3|uint3', x) and x not in ('cudaEglFrame', 'cudaGraphicsResource')]
        fields = [(x, path) for x in types for path, _ in self.ours.typedefs[x].fields
                  if f'}} {x};' in self.types_text or f'}} {x},' in self.types_text]
        constants = [x for x in self.ours.constants]
        lines = [f'CONSTANT({x})' for x in constants] + [f'TYPE({x})' for x in types]
        lines += [f'FIELD({x}, {path})' for x, path in fields]
        ours = self.probe(os.environ['CC'], 'probe_ours.c', '#include "runtime/cudart_types.h"\n',
                          self.our_flags, lines)
        theirs = self.probe('g++', 'probe_theirs.cc', self.their_text, self.their_flags, lines)
        for left, right in zip(ours, theirs):
            if left != right:
                fail(f'{left}, in the toolkit {right.rsplit(": ", 1)[1]}')
        counts.update(types=len(types), fields=len(fields), constants=len(constants))

    def enumerators(self, name):
        """Of an enumeration of the toolkit's: name -> value. Empty where the name is none."""
        found = re.search(r'enum (?:__attribute__\S+ )?(?:%s(?:_enum)?)\s*\{([^}]*)\}|'
                          r'typedef enum \w+\s*\{([^}]*)\}\s*%s;' % (name, name), self.theirs)
        values, last = {}, -1
        for item in (found[1] or found[2] or '').split(',') if found else []:
            part = re.fullmatch(r'\s*(\w+)\s*(?:=\s*(.*?))?\s*', item, re.S)
            if part:
                text = re.sub(r'(\d)[uU]', r'\1', part[2] or '')
                last = values.get(text, None) if text in values else eval(text) if text else last + 1
                values[part[1]] = last
        return values

    def enums(self):
        """An enumeration that we take from the driver has no value that the driver's lacks."""
        checked = 0
        for driver, runtime in re.findall(r'^typedef (CU\w+) (cuda\w+);', self.types_text, re.M):
            theirs = self.enumerators(runtime)
            if not theirs:
                continue
            known = set(self.enumerators(driver).values())
            checked += 1
            for name, value in theirs.items():
                if value not in known and not re.search(r'Max$|Count$|Reserved', name):
                    fail(f'{name} of {runtime}: {driver} has no {value}')
        counts['shared enumerations'] = checked

    def errors(self):
        rows = re.findall(r'^ERROR\((\w+), (\d+),', contents(f'{self.src}/driver/cudart_errors.def'), re.M)
        same_set('error', [name for name, _ in rows], self.enumerators('cudaError'))
        if [int(value) for _, value in rows] != sorted(int(value) for _, value in rows):
            fail('the errors are not in ascending order')
        counts['errors'] = len(rows)

    def calls(self):
        """The signatures. A twin has that of the call it belongs to."""
        lines, missing = [], []
        for symbol, result, parameters in self.rows:
            base = re.sub(r'_(ptsz|ptds)$', '', symbol)
            if symbol.startswith('__'):
                continue
            if not re.search(r'\b%s\b' % base, self.theirs):
                missing.append(symbol)
                continue
            lines.append(f'extern "C" {result} {base}({parameters});  // {symbol}')
        for symbol in missing:
            fail(f'{symbol}: the toolkit does not declare it')
        # A function with C linkage has one signature: another declaration of it is an error.
        write(f'{self.work}/calls.cc', self.their_text + '\n'.join(lines) + '\n')
        result = subprocess.run(['g++', '-fsyntax-only', *self.their_flags, f'{self.work}/calls.cc'],
                                stderr=subprocess.PIPE, text=True, check=False)
        errors = re.findall(r'error: (.*)', result.stderr)
        for error in errors or [result.stderr] * (result.returncode != 0):
            fail(error)
        counts['signatures'] = len(lines)

    def exports(self):
        table = [row[0] for row in self.rows] + re.findall(r'^BARE\((\w+)\)', self.calls_text, re.M)
        found = glob.glob(f'{self.toolkit}/lib64/libcudart.so.13')
        if not found:
            print('note: the toolkit has no libcudart.so.13, its exports were not compared')
            return
        lines = [line.split() for line in output('nm', '-D', '--defined-only', found[0]).splitlines()]
        same_set('exported symbol', table, [line[2].split('@')[0] for line in lines if line[1] != 'A'])
        counts['exports'] = len(table)


def version(path, pattern):
    return int(re.search(pattern, contents(path))[1])


def main():
    src, toolkit, work = sys.argv[1:]
    ours = version(f'{src}/runtime/cudart_types.h', r'CUDART_VERSION = (\d+)')
    theirs = version(f'{toolkit}/include/cuda_runtime_api.h', r'#define CUDART_VERSION +(\d+)')
    if ours != theirs:
        print(f'skipped: the toolkit is CUDA {theirs}, src/runtime describes {ours}')
        return 77
    comparison = Comparison(src, toolkit, work)
    comparison.values()
    comparison.enums()
    comparison.errors()
    comparison.calls()
    comparison.exports()
    for message in failures:
        print('differs:', message)
    print('compared:', ', '.join(f'{n} {what}' for what, n in counts.items()))
    return 1 if failures else 0


sys.exit(main())
