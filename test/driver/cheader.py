# SPDX-License-Identifier: MIT
"""Reads what a C header declares: enough of C for headers of types and prototypes."""

import re
import subprocess

TOKEN = re.compile(r'[A-Za-z_]\w*|0[xX][0-9a-fA-F]+\w*|\d+\w*|<<|>>|\.\.\.|\S')
BASE_WORDS = set('void char short int long float double signed unsigned size_t'.split())
QUALIFIERS = set('const volatile static extern inline __inline__'.split())
TAGS = set('struct union enum'.split())


class Header:
    """constants, macros, renames: names; typedefs: name -> Typedef; functions: name -> text."""

    def __init__(self):
        self.constants = []
        self.macros = []
        self.renames = []
        self.typedefs = {}
        self.functions = {}


class Typedef:
    """kind is 'enum', 'record' or 'alias'. text is the type it stands for, where that has a name
    or is built from one: the first name of a declaration is the text of its others."""

    def __init__(self, kind, text, fields):
        self.kind, self.text, self.fields = kind, text, fields


class Parser:
    def __init__(self, text, header):
        self.tokens = TOKEN.findall(text)
        self.at = 0
        self.header = header

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ''

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, token):
        found = self.next()
        if found != token:
            around = ' '.join(self.tokens[max(0, self.at - 12):self.at + 6])
            raise SyntaxError(f'expected {token}, found {found} in: {around}')

    def until(self, *ends):
        """The tokens up to one of ends that is not inside brackets; the end itself stays."""
        taken, depth = [], 0
        while depth or self.peek() not in ends:
            token = self.next()
            depth += token in ('(', '[', '{')
            depth -= token in (')', ']', '}')
            taken.append(token)
        return taken

    def attributes(self):
        while self.peek() in ('__attribute__', '_Alignas'):
            self.next()
            self.expect('(')
            self.until(')')
            self.expect(')')

    def specifiers(self):
        """Returns (words, fields): fields is None unless a struct or union body was seen."""
        words, fields, based = [], None, False
        while True:
            self.attributes()
            token = self.peek()
            if token in TAGS:
                fields = self.tagged(words)
                based = True
            elif token in QUALIFIERS or token in BASE_WORDS:
                words.append(self.next())
                based = based or token in BASE_WORDS
            elif not based and re.match(r'[A-Za-z_]', token):
                words.append(self.next())
                based = True
            else:
                return [w for w in words if w not in ('extern', 'static')], fields

    def tagged(self, words):
        keyword = self.next()
        words.append(keyword)
        if re.match(r'[A-Za-z_]', self.peek()):
            words.append(self.next())
        if self.peek() != '{':
            return None
        self.next()
        fields = self.enumerators() if keyword == 'enum' else self.members()
        self.expect('}')
        return fields

    def enumerators(self):
        while self.peek() != '}':
            self.header.constants.append(self.next())
            self.until(',', '}')
            if self.peek() == ',':
                self.next()
        return []

    def declarator(self):
        """Returns the declared name and the declarator without it."""
        tokens = self.until(',', ';')
        place = next((i for i, t in enumerate(tokens)
                      if re.match(r'[A-Za-z_]', t) and t not in QUALIFIERS), None)
        if place is None:
            return '', ' '.join(tokens)
        return tokens[place], ' '.join(tokens[:place] + tokens[place + 1:])

    def declarators(self):
        while True:
            yield self.declarator()
            if self.next() == ';':
                return

    def members(self):
        """Paths of all fields with the text of their types, None for an unnamed struct or union."""
        fields = []
        while self.peek() != '}':
            words, inner = self.specifiers()
            for name, rest in self.declarators():
                if name and inner is None:
                    fields.append((name, ' '.join(words) + ' ' + rest))
                elif name:
                    fields.append((name, None))
                prefix = name + '.' if name else ''
                fields += [(prefix + path, text) for path, text in inner or []]
        return fields

    def typedef(self):
        words, fields = self.specifiers()
        text, first = ' '.join(words), None
        for name, rest in self.declarators():
            if rest or words[0] not in TAGS:
                known = None if rest else self.header.typedefs.get(text)
                new = Typedef(known.kind if known else 'alias', (text + ' ' + rest).strip(),
                              known.fields if known else [])
            else:
                new = Typedef('enum' if words[0] == 'enum' else 'record', first, fields or [])
                first = first or name
            self.header.typedefs[name] = new

    def declarations(self):
        while self.at < len(self.tokens):
            if self.peek() == ';':
                self.next()
            elif self.peek() == 'typedef':
                self.next()
                self.typedef()
            else:
                self.specifiers()
                for name, rest in self.declarators():
                    if rest.startswith('('):
                        self.header.functions[name] = rest


def read(cc, flags, source, keep):
    """What the files whose path satisfies keep() declare when source is compiled."""
    text = subprocess.run([cc, '-std=gnu11', '-E', '-dD', *flags, source], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    header, lines, wanted = Header(), [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            wanted = keep(marker[1])
        elif wanted and line.startswith('#define '):
            macro = re.match(r'#define (\w+) (\S.*)$', line)
            if macro:
                (header.renames if macro[1].startswith('cu') else header.macros).append(macro[1])
        elif wanted and not line.startswith('#'):
            lines.append(line)
    Parser('\n'.join(lines), header).declarations()
    return header
