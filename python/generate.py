#!/usr/bin/env python3
"""Write hollownet/_abi.py: the library's enums, structs, callbacks and functions for ctypes, from its public headers.

    python3 python/generate.py            write the module
    python3 python/generate.py --check    exit with 1 if it is not what the headers say
    python3 python/generate.py --offsets  print a C program that prints the size and the offsets of every struct

The headers are our own and plain C11, so a small parser is enough: it knows the declarations that they use and stops
with a message at anything else. Pointers become c_void_p, texts c_char_p, callbacks CFUNCTYPE.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "hollow"
OUTPUT = ROOT / "python" / "hollownet" / "_abi.py"

SCALARS = {
    "char": "c_char",
    "int": "c_int",
    "double": "c_double",
    "float": "c_float",
    "size_t": "c_size_t",
    "uint8_t": "c_ubyte",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "ptrdiff_t": "c_ssize_t",
}


class Parser:
    """Declarations in the order in which the headers give them."""

    def __init__(self):
        self.constants = {}  # name -> integer
        self.texts = {}  # name -> text, of #define NAME "text"
        self.status = []  # (name, code, text)
        self.enums = set()
        self.aliases = {}  # typedef of a scalar -> ctypes name
        self.opaque = set()
        self.structs = {}  # name -> [(member, ctype)]
        self.callbacks = {}  # name -> (result, [argument])
        self.functions = {}  # name -> (result, [argument])

    # ---- headers ----

    def headers(self):
        seen = []

        def visit(name):
            if name in seen:
                return
            text = (HEADERS / name).read_text()
            for other in re.findall(r'^#include "hollow/([\w.]+)"', text, re.M):
                visit(other)
            seen.append(name)

        for name in sorted(p.name for p in HEADERS.glob("*.h")):
            visit(name)
        return seen

    def read(self, name):
        text = re.sub(r"/\*.*?\*/", " ", (HEADERS / name).read_text(), flags=re.S)
        text = text.replace("\\\n", " ")
        for line in re.findall(r"^\s*#\s*define\s+(.*)$", text, re.M):
            self.define(line)
        text = re.sub(r"^\s*#ifdef __cplusplus.*?#endif", "", text, flags=re.M | re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        text = re.sub(r"\bHL_STATUS_LIST\(\w+\)", "", text)
        text = re.sub(r"\s+", " ", text).replace("unsigned char", "uint8_t")
        for declaration in split_declarations(text):
            try:
                self.declare(declaration)
            except ValueError as error:
                sys.exit(f"{name}: {error}: {declaration}")

    def define(self, line):
        text = re.match(r'(\w+) "(.*)"$', line)
        if text:
            self.texts[text[1]] = text[2]
        number = re.match(r"(HL_\w+)\s+\(?(-?\d+)\)?$", line.strip())
        if number:
            self.constants[number[1]] = int(number[2])
        if line.startswith("HL_STATUS_LIST"):
            for name, code, words in re.findall(r'X\((\w+), (-?\d+), "([^"]*)"\)', line):
                self.status.append((name, int(code), words))
                self.constants[name] = int(code)

    # ---- declarations ----

    def declare(self, text):
        if text.startswith("typedef enum") or text.startswith("enum"):
            self.enum(text)
        elif re.match(r"(typedef )?struct \w+ \{", text):
            self.struct(text)
        elif match := re.match(r"typedef struct (\w+) (\w+)$", text):
            self.opaque.add(match[2])
        elif text.startswith("typedef"):
            self.typedef(text[len("typedef ") :])
        elif text.startswith("HL_API"):
            result, name, arguments = self.prototype(text[len("HL_API ") :])
            self.functions[name] = (result, arguments)
        else:
            raise ValueError("not a declaration that is known here")

    def enum(self, text):
        match = re.match(r"(?:typedef )?enum\s*(\w*)\s*\{(.*)\}\s*(\w*)$", text)
        if not match:
            raise ValueError("not an enum")
        if match[3]:
            self.enums.add(match[3])
        value = -1
        for entry in filter(None, (e.strip() for e in match[2].split(","))):
            name, _, given = (part.strip() for part in entry.partition("="))
            value = self.number(given) if given else value + 1
            self.constants[name] = value

    def number(self, text):
        try:
            return int(eval(text, {"__builtins__": {}}, self.constants))  # sums and shifts of earlier constants
        except Exception as error:
            raise ValueError(f"not a number: {text}") from error

    def struct(self, text):
        match = re.match(r"(?:typedef )?struct (\w+) \{(.*)\}\s*\w*$", text)
        name = match[1]
        self.opaque.discard(name)
        self.structs[name] = []
        for member in filter(None, (m.strip() for m in match[2].split(";"))):
            self.structs[name] += self.members(member)

    def members(self, text):
        """[(name, ctype)] of one line of a struct, which may declare several."""
        if match := re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", text):  # a pointer to a function
            return [(match[2], self.function_type(match[1].strip(), match[3]))]
        parts = text.split(",")
        base = re.match(r"((?:const |struct )*\w+)(?: const\b)?\s*(.*)$", parts[0])
        declared = []
        for part in [base[2], *parts[1:]]:
            stars = re.match(r"[\s*const]*(?=\b(?!const\b)\w)", part.strip())[0]
            shape = re.match(r"(\w+)((?:\s*\[[^\]]*\])*)$", part.strip()[len(stars) :])
            if not shape:
                raise ValueError(f"not a member: {part}")
            kind = self.type(base[1] + stars)
            for length in reversed(re.findall(r"\[([^\]]*)\]", shape[2])):
                kind = f"({kind} * {self.number(length)})"
            declared.append((shape[1], kind))
        return declared

    def typedef(self, text):
        if "(" in text:
            result, name, arguments = self.prototype(text)
            self.callbacks[name] = (result, arguments)
        else:
            kind, name = text.rsplit(" ", 1)
            self.aliases[name] = self.type(kind)

    def prototype(self, text):
        match = re.match(r"(.*?)(\w+)\s*\((.*)\)$", text)
        if not match:
            raise ValueError("not a function")
        return self.type(match[1].strip(), result=True), match[2], self.arguments(match[3])

    def function_type(self, result, arguments):
        return "CFUNCTYPE(" + ", ".join([self.type(result, result=True), *self.arguments(arguments)]) + ")"

    def arguments(self, text):
        if text.strip() in ("", "void"):
            return []
        kinds = []
        for argument in text.split(","):
            argument = argument.strip()
            array = argument.endswith("]")
            argument = re.sub(r"\s*\[[^\]]*\]$", "", argument)
            kind = re.match(r"(.*?)(\w+)$", argument)
            kinds.append(self.type(kind[1].strip() + ("*" if array else "")))
        return kinds

    def type(self, text, result=False):
        """The ctypes expression for a C type."""
        words = re.sub(r"\b(const|struct)\b", " ", text).replace(" ", "")
        base, stars = words.rstrip("*"), words.count("*")
        if base in self.callbacks and stars == 1:
            return base
        if base == "char" and stars == 1:
            return "c_char_p"
        if base == "char" and stars == 2 and text.count("const") == 2:
            return "POINTER(c_char_p)"
        if stars:
            known = base in self.structs or base in self.opaque or base in SCALARS or base in self.enums
            known = known or "struct " in text or base in self.aliases or base == "void"
            if not known:
                raise ValueError(f"unknown type {base}")
            return f"POINTER({base})" if result and stars == 1 and base in self.structs else "c_void_p"
        if base == "void":
            return "None"
        if base in self.enums:
            return "c_int"
        if base in self.structs:
            return base
        if base in self.aliases:
            return self.aliases[base]
        if base in SCALARS:
            return SCALARS[base]
        raise ValueError(f"unknown type {base}")


def split_declarations(text):
    """Split at the semicolons that are outside of braces."""
    declarations, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == ";" and depth == 0:
            declarations.append(text[start:at].strip())
            start = at + 1
    return [d for d in declarations if d]


def parse():
    parser = Parser()
    for name in parser.headers():
        parser.read(name)
    return parser


def module(parser):
    out = [
        '"""The C library\'s interface for ctypes. Made from the headers by python/generate.py; do not edit."""',
        "",
        "# fmt: off",
        "# ruff: noqa",
        "from __future__ import annotations",
        "",
        "from ctypes import (  # noqa: F401",
        "    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_ssize_t,",
        "    c_ubyte, c_uint32, c_uint64, c_void_p,",
        ")",
        "from typing import Any",
        "",
        f'HL_VERSION = "{parser.texts["HL_VERSION"]}"',
        "",
    ]
    out += [f"{name} = {value}" for name, value in parser.constants.items()]
    out += ["", "STATUS_TEXT: dict[int, str] = {"]
    out += [f'    {code}: "{words}",' for _, code, words in parser.status]
    out += ["}", ""]
    for name in parser.structs:
        out += [f"class {name}(Structure): ...", ""]
    for name, (result, arguments) in parser.callbacks.items():
        out.append(f"{name} = CFUNCTYPE({', '.join([result, *arguments])})")
    out.append("")
    for name in by_content(parser.structs):
        members = [f'("{member}", {kind})' for member, kind in parser.structs[name]]
        out += [f"{name}._fields_ = [", *(f"    {m}," for m in members), "]"]
    out += ["", "STRUCTS: dict[str, Any] = {"]
    out += [f'    "{name}": {name},' for name in parser.structs]
    out += [
        "}",
        "",
        "# The result and the arguments of every function.",
        "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {",
    ]
    for name, (result, arguments) in parser.functions.items():
        out.append(f'    "{name}": ({result}, [{", ".join(arguments)}]),')
    out += ["}", ""]
    return "\n".join(out)


def by_content(structs):
    """The structs' names, those that are members of others first."""
    done = []

    def visit(name):
        if name in done:
            return
        for _, kind in structs[name]:
            for word in re.findall(r"\w+", kind):
                if word in structs and "POINTER" not in kind and "CFUNCTYPE" not in kind and word != name:
                    visit(word)
        done.append(name)

    for name in structs:
        visit(name)
    return done


def offsets(parser):
    """A C program that prints "struct size" and "struct.member offset size" lines."""
    out = ["#include <stddef.h>", "#include <stdio.h>", "#include <hollow/hollow.h>", "int main(void)", "{"]
    for name, members in parser.structs.items():
        out.append(f'    printf("{name} %zu\\n", sizeof({name}));')
        for member, _ in members:
            out.append(
                f'    printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));'
            )
    return "\n".join([*out, "    return 0;", "}", ""])


def main():
    parser = parse()
    if "--offsets" in sys.argv:
        print(offsets(parser), end="")
    elif "--check" in sys.argv:
        if not OUTPUT.exists() or OUTPUT.read_text() != module(parser):
            sys.exit("python/hollownet/_abi.py does not agree with the headers; run python3 python/generate.py")
    else:
        OUTPUT.write_text(module(parser))


if __name__ == "__main__":
    main()
