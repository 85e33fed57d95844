#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library as one foliage.c and one foliage.h, to drop into a project.

The engine and the page cache (base/, mm/, cache/; not the simulated machine, which only the tool needs). foliage.h
is the public headers one after another, foliage.c the private headers, each where it is first needed, and the sources.

What is private to a source file may have the name of something private to another one, or of something that a
system header declares which that file does not include: such names get the file's name in front. Macros of a source
file end with it. What the files share among themselves gets the prefix foliage__, so that the object has no global
name without "foliage_". Nothing else is changed, and every part says which file it comes from.

usage: scripts/amalgamate.py FOLDER        writes FOLDER/foliage.c and FOLDER/foliage.h
       scripts/amalgamate.py --names       the names that are changed, and why
"""
import glob
import os
import re
import subprocess
import sys

PUBLIC = ["version", "policy", "reclaim", "cache", "group", "file", "segment"]
FOLDERS = ["base", "mm", "mm/reference", "cache"]

# One token of C: comments, strings and the rest; identifiers are what is looked at.
TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<include>^[ \t]*\#[ \t]*include[^\n]*)"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<other>\s+|->|.)""",
    re.S | re.M | re.X)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"].*$', re.M)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def code_of(text):
    """The text without comments, strings and directives, as long as before."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def outermost(code):
    """Declarations of file scope, each as text without what is in braces, and what is in their braces."""
    depth, start, body, inner = 0, 0, [], []
    for at, c in enumerate(code):
        if c == "{":
            depth += 1
            if depth == 1:
                body.append(code[start:at])
                start = at + 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                inner.append(code[start:at])
                start = at + 1
                head = "".join(body)
                # A function ends here; a type or an initializer at its semicolon.
                if re.search(r"\)\s*$", head) and "=" not in head:
                    yield head, inner
                    body, inner = [], []
        elif c == ";" and depth == 0:
            body.append(code[start:at])
            yield "".join(body), inner
            start, body, inner = at + 1, [], []


def names_of(text):
    """Names of file scope that a text defines for itself: statics, enumeration constants, typedefs; and tags."""
    names, tags = set(), set()
    for head, inner in outermost(code_of(text)):
        for tag in re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*$", head.split("=")[0].rstrip()):
            if inner and not re.match(r"\s*static\b", head):
                tags.add(tag)
        if re.match(r"\s*enum\b[^(]*$", head) and inner:
            for constant in re.split(r",(?![^(]*\))", inner[0]):
                found = re.match(r"\s*(\w+)", constant)
                if found:
                    names.add(found.group(1))
        if re.match(r"\s*typedef\b", head):
            names.add(re.findall(r"\w+", head)[-1])
        if re.match(r"\s*(?:_Thread_local\s+)?static\b", head):
            declared = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*", "", head).split("=")[0]
            declared = re.sub(r"\[[^]]*\]", "", declared)
            found = re.search(r"(\w+)\s*\(|\(\s*\*\s*(\w+)", declared) or re.search(r"(\w+)\s*$", declared)
            name = found and next(filter(None, found.groups()))
            if name and name not in ("struct", "static", "const", "inline"):
                names.add(name)
    return names, tags


def external_names(text):
    """Functions and variables that a header declares for other files."""
    names = set()
    for head, inner in outermost(code_of(text)):
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*", "", head)
        # A variable may be declared together with its type.
        if (inner and not re.match(r"\s*extern\b", head)) or re.match(r"\s*(?:static|typedef|_Static_assert)\b", head):
            continue
        found = re.search(r"(\w+)\s*\(", head)
        if not found and re.match(r"\s*extern\b", head):
            for part in head.split(","):
                names.add(re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", part))[-1])
        elif found:
            names.add(found.group(1))
    return {n for n in names if not n.startswith("foliage_")}


def macros(text):
    return re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, flags=re.M)


def system_names(sources):
    """Every identifier that the system headers of all files together declare."""
    headers = sorted({h for text in sources.values() for kind, h in INCLUDE.findall(text) if kind == "<"})
    program = "".join(f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in headers)
    command = [os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-E", "-P", "-dD", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=True)
    return set(re.findall(r"[A-Za-z_]\w*", done.stdout))


def prefix_of(path):
    return re.sub(r"\W", "_", os.path.splitext(path)[0]) + "_"


def rename(text, changes, tags):
    """Members keep their names: what follows a dot or an arrow is one. Tags are what follows their keyword."""
    out, last = [], ""
    for m in TOKEN.finditer(text):
        token = m.group()
        if m.lastgroup == "name" and last in ("struct", "union", "enum"):
            token = tags.get(token, token)
        elif m.lastgroup == "name" and last not in (".", "->"):
            token = changes.get(token, token)
        out.append(token)
        if m.lastgroup != "skip" and token.strip():
            last = token
    return "".join(out)


class Amalgamation:
    def __init__(self):
        self.paths = [p for f in FOLDERS for p in sorted(glob.glob(f + "/*.c"))]
        self.public = [f"include/foliage/{n}.h" for n in PUBLIC]
        missing = set(glob.glob("include/foliage/*.h")) - set(self.public)
        if missing or not all(map(os.path.exists, self.public)):
            sys.exit(f"amalgamate: the list of public headers is not that of include/foliage: {sorted(missing)}")
        self.sources = {p: read(p) for p in self.paths}
        self.done = set()
        self.shared = sorted(set().union(*(external_names(read(p)) for f in FOLDERS for p in glob.glob(f + "/*.h"))))
        self.changes = self.find_changes()

    def find_changes(self):
        headers = {p: read(p) for f in FOLDERS for p in glob.glob(f + "/*.h")}
        headers.update((p, read(p)) for p in self.public)
        system = system_names({**self.sources, **headers})
        shared = set().union(*(names_of(text)[0] | set(macros(text)) for text in headers.values()))
        # A tag that a header has is the same type.
        keyword = r"\b(?:struct|union|enum)\s+(\w+)"
        known = {w for text in headers.values() for w in re.findall(keyword, code_of(text))}
        owners, tag_owners = {}, {}
        for path, text in self.sources.items():
            names, tags = names_of(text)
            for name in names | set(macros(text)):
                owners.setdefault(name, set()).add(path)
            for tag in tags - known:
                tag_owners.setdefault(tag, set()).add(path)
        changes = {p: ({}, {}) for p in self.paths}
        self.why = []
        for name, paths in sorted(owners.items()):
            why = ("also in " + ", ".join(sorted(paths)) if len(paths) > 1 else "a name of the system"
                   if name in system else "a name of a header" if name in shared else None)
            for path in sorted(paths if why else []):
                if name in macros(self.sources[path]):
                    continue  # ends with the file
                changes[path][0][name] = prefix_of(path) + name
                self.why.append(f"{path}: {name}: {why}")
        for tag, paths in sorted(tag_owners.items()):
            if len(paths) < 2 and tag not in system:
                continue
            for path in sorted(paths):
                changes[path][1][tag] = prefix_of(path) + tag
                self.why.append(f"{path}: struct {tag}: " + ("a name of the system" if len(paths) < 2 else
                                                             "also in " + ", ".join(sorted(paths))))
        return changes

    def body(self, path, text, public):
        """The text with the headers that it is the first to need in their places."""
        def include(m):
            kind, name = INCLUDE.match(m.group()).groups()
            if kind == "<" and not name.startswith("foliage/"):
                return m.group()
            if name.startswith("foliage/"):
                if not public:
                    return ""
                return self.header("include/" + name, True)
            if "/" not in name:
                name = os.path.join(os.path.dirname(path), name)
            return self.header(name, False)
        return INCLUDE.sub(include, text)

    def header(self, path, public):
        if path in self.done:
            return ""
        self.done.add(path)
        text = self.body(path, read(path), public)
        return f"/* ==== {path} ==== */\n{text.strip()}\n/* ==== end of {path} ==== */"

    def source(self, path):
        text = rename(self.sources[path], *self.changes[path])
        end = "".join(f"#undef {m}\n" for m in dict.fromkeys(macros(text)))
        return f"/* ==== {path} ==== */\n{self.body(path, text, False).strip()}\n{end}/* ==== end of {path} ==== */\n"

    def write(self, folder):
        version = re.search(r"project\(foliage VERSION (\S+)", read("CMakeLists.txt")).group(1)
        licence = read("LICENSE").strip()
        about = f"""/* Foliage {version}: Linux page reclaim as a library, in two files made from its sources.
 *
 * cc -O2 -std=gnu17 -fno-strict-aliasing -c foliage.c; link with -pthread -lm, and with -ldl where dlopen() is apart.
 *
""" + "".join(f" * {line}".rstrip() + "\n" for line in licence.split("\n")) + " */\n"
        parts = [self.header(p, True) for p in self.public]
        header = about + "#ifndef FOLIAGE_H\n#define FOLIAGE_H\n\n" + "\n\n".join(filter(None, parts)) + "\n\n#endif\n"
        source = (about + "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n"
                  f'#define FOLIAGE_VERSION "{version}"\n\n#include "foliage.h"\n\n'
                  "/* Headers have more functions than are needed here. */\n"
                  '#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "-Wunused-function"\n#endif\n\n' +
                  "/* What the parts below share among themselves. */\n" +
                  "".join(f"#define {n} foliage__{n}\n" for n in self.shared) + "\n" +
                  "\n".join(self.source(p) for p in self.paths))
        for name, text in ("foliage.h", header), ("foliage.c", source):
            with open(os.path.join(folder, name + ".new"), "w", encoding="utf-8") as f:
                f.write(re.sub(r"\n{3,}", "\n\n", text))
            os.replace(os.path.join(folder, name + ".new"), os.path.join(folder, name))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().split("\n\n")[-1])
    os.chdir(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), ".."))
    amalgamation = Amalgamation()
    if sys.argv[1] == "--names":
        print("\n".join(amalgamation.why))
    else:
        os.makedirs(sys.argv[1], exist_ok=True)
        amalgamation.write(sys.argv[1])


main()
