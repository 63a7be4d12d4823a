# SPDX-License-Identifier: MIT
"""Compares src/driver with a CUDA toolkit. Called by compare_cuda_h.sh."""

import glob
import os
import re
import subprocess
import sys

import cheader

# What the toolkit declares and src/driver leaves out on purpose.
LEFT_OUT = [
    r'CU_EGL_COLOR_FORMAT_\w+',  # opaque to us
    r'MAX_PLANES',               # a name too common for a header of ours
    r'cuEventCreateFromEGLSync',  # not exported by libcuda on x86-64
    r'cuWGLGetDevice',           # Windows
    r'cudbg\w+',                 # for debuggers
    r'_CONCAT_\w+|CUDAAPI|CUDA_CB|__\w+',
]

# cuda.h declares every version of a call, with types to match, only for its own makers.
INTERNAL = ['-D__CUDA_API_VERSION_INTERNAL', '-D__CUDA_API_VERSION_INTERNAL_ODR']
TOOLKIT_HEADERS = ['cuda.h', 'cudaProfiler.h', 'cudaGL.h', 'cudaEGL.h',
                   'vdpau/vdpau.h', 'cudaVDPAU.h']

# Graphics headers are rarely installed where CUDA is; these stand for them.
STAND_INS = {
    'GL/gl.h': 'typedef unsigned int GLuint, GLenum;',
    'EGL/egl.h': 'typedef int EGLint;',
    'EGL/eglext.h': 'typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;',
    'vdpau/vdpau.h': '#include <stdint.h>\n'
                     'typedef uint32_t VdpDevice, VdpVideoSurface, VdpOutputSurface;\n'
                     'typedef enum { VDP_STATUS_OK } VdpStatus;\n'
                     'typedef VdpStatus VdpGetProcAddress(VdpDevice, uint32_t, void **);',
}

PROBE = '''
#include <stddef.h>
#include <stdio.h>
#define CONSTANT(x) printf("value of " #x ": %lld\\n", (long long)(x));
#define TYPE(x) printf("size and alignment of " #x ": %zu %zu\\n", sizeof(x), _Alignof(x));
#define ENUM(x) printf("sign of " #x ": %d\\n", (x)-1 < (x)0);
#define FIELD(x, y) printf("offset and size of " #x "." #y ": %zu %zu\\n", offsetof(x, y), \\
                           sizeof(((x *)0)->y));
int main(void)
{
'''

SAME = '''
#define SAME(left, right, what) _Static_assert(__builtin_types_compatible_p(left, right), what);
'''

CALLS = '''
#define CALL(symbol, base, since, flags, result, parameters) _Static_assert( \\
    __builtin_types_compatible_p(__typeof__(&symbol), result (*) parameters), "call " #symbol);
#include "driver/calls.def"
'''

failures = []


def fail(message):
    failures.append(message)


def left_out(name):
    return any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def contents(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def missing(kind, ours, theirs):
    """Reports what only one side has; returns what both have."""
    theirs = {name for name in theirs if not left_out(name)}
    for name in sorted(theirs - set(ours)):
        fail(f'{kind} {name}: in the toolkit, not in src/driver')
    for name in sorted(set(ours) - theirs):
        fail(f'{kind} {name}: in src/driver, not in the toolkit')
    return sorted(theirs & set(ours))


class Comparison:
    def __init__(self, src, toolkit, work):
        self.cc, self.src, self.toolkit, self.work = os.environ['CC'], src, toolkit, work
        self.include = os.path.join(toolkit, 'include')
        self.counts = {}
        for name, text in STAND_INS.items():
            write(f'{work}/include/{name}', text + '\n')
        self.our_flags = ['-I', src]
        self.their_flags = [*INTERNAL, '-I', f'{work}/include', '-I', self.include]
        self.our_text = '#include "driver/cuda_api.h"\n'
        self.their_text = ''.join(f'#include "{name}"\n' for name in TOOLKIT_HEADERS)
        self.ours = self.read('ours', self.our_text, self.our_flags,
                              glob.glob(f'{src}/driver/*'))
        self.theirs = self.read('theirs', self.their_text, self.their_flags,
                                [f'{self.include}/{name}' for name in TOOLKIT_HEADERS])
        # CALL rows name symbols; cuda.h would turn some of them into newer ones.
        self.their_text += ''.join(f'#undef {name}\n' for name in self.theirs.renames)

    def read(self, name, text, flags, files):
        source = f'{self.work}/{name}.c'
        write(source, text)
        files = {os.path.realpath(file) for file in files}
        return cheader.read(self.cc, flags, source, lambda path: os.path.realpath(path) in files)

    def names(self):
        """Fills the lists of what both sides declare."""
        ours, theirs = self.ours, self.theirs
        self.constants = missing('constant', ours.constants + ours.macros,
                                 theirs.constants + theirs.macros)
        self.typedefs = missing('type', ours.typedefs, theirs.typedefs)
        self.fields = []
        for name in self.typedefs:
            fields = [{path for path, _ in side.typedefs[name].fields} for side in (ours, theirs)]
            self.fields += [(name, path) for path in missing(f'field of {name}:', *fields)]
        functions = missing('function', ours.functions, theirs.functions)
        self.counts.update(constants=len(self.constants), types=len(self.typedefs),
                           fields=len(self.fields), functions=len(functions))

    def probe(self, name, text, flags, enums):
        lines = [f'CONSTANT({x})' for x in self.constants]
        lines += [f'TYPE({x})' for x in self.typedefs]
        lines += [f'ENUM({x})' for x in enums]
        lines += [f'FIELD({x}, {path})' for x, path in self.fields]
        source, program = f'{self.work}/probe_{name}.c', f'{self.work}/probe_{name}'
        write(source, text + PROBE + '\n'.join(lines) + '\nreturn 0;\n}\n')
        subprocess.run([self.cc, '-std=gnu11', '-w', *flags, source, '-o', program], check=True)
        return subprocess.run([program], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.splitlines()

    def values(self):
        enums = [x for x in self.typedefs if self.ours.typedefs[x].kind == 'enum']
        self.counts['enums'] = len(enums)
        our_lines = self.probe('ours', self.our_text, self.our_flags, enums)
        their_lines = self.probe('theirs', self.their_text, self.their_flags, enums)
        for ours, theirs in zip(our_lines, their_lines):
            if ours != theirs:
                fail(f'{ours}, in the toolkit {theirs.rsplit(": ", 1)[1]}')

    def assertions(self, header):
        """One side's own words for its types, for the compiler to check with the other's."""
        lines, both_fields = [], set(self.fields)

        def same(left, right, what):
            lines.append(f'SAME({left}, {right}, "{what}")')

        for name in self.typedefs:
            typedef = header.typedefs[name]
            if typedef.text:
                same(name, typedef.text, f'type {name}')
            for path, text in typedef.fields:
                if text and (name, path) in both_fields:
                    same(f'__typeof__((({name} *)0)->{path})', text, f'type of {name}.{path}')
        return SAME + '\n'.join(lines) + '\n'

    def compile(self, name, text, flags):
        source = f'{self.work}/{name}.c'
        write(source, text)
        result = subprocess.run([self.cc, '-std=gnu11', '-fsyntax-only', '-w', *flags, source],
                                stderr=subprocess.PIPE, text=True, check=False)
        errors = [line.split('error:', 1)[1].strip() for line in result.stderr.splitlines()
                  if 'error:' in line]
        for error in errors or [result.stderr] * (result.returncode != 0):
            fail(error)

    def types(self):
        self.compile('our_types', self.our_text + self.assertions(self.theirs), self.our_flags)
        self.compile('their_types', self.their_text + self.assertions(self.ours), self.their_flags)
        self.compile('calls', self.their_text + CALLS, self.their_flags + self.our_flags)

    def enums_in(self, text):
        """The enumerations that text mentions, each by its first name."""
        words = re.findall(r'\w+', re.sub(r'\[[^]]*\]', '', text or ''))
        known = self.ours.typedefs
        return [known[word].text or word for word in words
                if word in known and known[word].kind == 'enum']

    def enums(self):
        """To a C compiler an enumeration and unsigned int are compatible; not so here."""
        pairs = [(f'parameters of {name}', self.ours.functions[name], self.theirs.functions[name])
                 for name in self.ours.functions.keys() & self.theirs.functions.keys()]
        for name in self.typedefs:
            ours, theirs = (dict(side.typedefs[name].fields) for side in (self.ours, self.theirs))
            pairs += [(f'type of {name}.{path}', ours[path], theirs[path])
                      for path in ours.keys() & theirs.keys()]
        for what, ours, theirs in pairs:
            if self.enums_in(ours) != self.enums_in(theirs):
                fail(f'{what}: {ours}, in the toolkit {theirs}')

    def rows(self):
        text = contents(os.path.join(self.src, 'driver', 'calls.def'))
        return re.findall(r'^CALL\((\w+),\s*(\w+), (\d+), ([\w |]+),', text, re.M)

    def exports(self):
        stubs = glob.glob(f'{self.toolkit}/lib64/stubs/libcuda.so')
        stubs += glob.glob(f'{self.toolkit}/targets/*/lib/stubs/libcuda.so')
        if not stubs:
            print('note: the toolkit has no stub library, its exports were not compared')
            return
        lines = subprocess.run(['nm', '-D', '--defined-only', stubs[0]], check=True,
                               stdout=subprocess.PIPE, text=True).stdout.splitlines()
        exported = {line.split()[2].split('@')[0] for line in lines}
        # Some releases of the stub have the graphics calls, some have not.
        listed = [row[0] for row in self.rows()
                  if 'DRIVER_GRAPHICS' not in row[3] or row[0] in exported]
        self.counts['exports'] = len(missing('exported symbol', listed, exported))

    def versions(self):
        """The toolkit's pointer types are named after the version that brought each symbol."""
        theirs = set()
        for path in glob.glob(f'{self.include}/cuda*Typedefs.h'):
            theirs.update(base + ' ' + version + (variant or '') for base, version, variant in
                          re.findall(r'\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)', contents(path))
                          if not left_out(base))
        ours = set()
        for symbol, base, since, flags in self.rows():
            variant = re.search(r'_PT(SZ|DS)', flags)
            ours.add(f'{base} {since}{variant[0].lower() if variant else ""}')
        self.counts['versions'] = len(missing('version', ours, theirs))


def cuda_version(path):
    return int(re.search(r'#define CUDA_VERSION (\d+)', contents(path))[1])


def main():
    src, toolkit, work = sys.argv[1:]
    ours = cuda_version(f'{src}/driver/cuda_types.h')
    theirs = cuda_version(f'{toolkit}/include/cuda.h')
    if ours != theirs:
        print(f'skipped: cuda.h is of CUDA {theirs}, src/driver describes {ours}')
        return 77
    comparison = Comparison(src, toolkit, work)
    comparison.names()
    comparison.values()
    comparison.types()
    comparison.enums()
    comparison.exports()
    comparison.versions()
    for message in failures:
        print('differs:', message)
    print('compared:', ', '.join(f'{n} {what}' for what, n in comparison.counts.items()))
    return 1 if failures else 0


sys.exit(main())
