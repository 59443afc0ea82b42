#!/usr/bin/env python3
"""attack.py PROGRAM: attack the commands of hollow with files. Prints each failure, and a line of JSON for each kind of attack.

"inputs as outputs": every input of every command as each of its outputs: by name, through links, and as a file that the command names after
another. The call must be refused, and no file may change. "odd tables": tables of odd numbers, shapes and texts through fit, logp, sample, report,
calibrate, sde and vae. A command must end within a minute with status 0, 1 or 2, say why if it is not 0, and print no nan with status 0."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

FLOW = "--members flow --iters 5 --batch 32 --hidden 8 --width 8 --features 4 --layers 1 --threads 1 --quiet".split()
VAE = "--iters 20 --latent 2 --net linear --threads 1 --quiet".split()
SDE = "--method pseudo-ml --iters 20 --hidden 8 --quiet".split()
CALLS = [  # inputs in braces; options that take an output
    ("fit {d.csv} --valid {e.csv}".split() + FLOW, ["-o", "--log"]),
    ("logp {m} {d.csv}".split(), ["--out"]),
    ("logp {m} {d.csv} --append".split(), ["--out"]),
    ("logp {m} {d.csv} --worst 5".split(), ["--out"]),
    ("sample {mc} --context {c.csv}".split(), ["--out"]),
    ("report {m} {d.csv}".split(), ["-o"]),
    ("report {s} {p.csv}".split(), ["-o"]),
    ("report {v} {i.csv}".split(), ["-o"]),
    ("calibrate {m} {d.csv}".split(), ["-o"]),
    ("sde fit {p.csv}".split() + SDE, ["-o", "--log"]),
    ("sde sample {s} --start {start.csv} -n 3".split(), ["--out"]),
    ("sde sample {s} --given {given.csv} -n 3".split(), ["--out"]),
    ("sde grid {s} {point.csv}".split(), ["--out"]),
    ("vae fit {i.csv} --valid {j.csv}".split() + VAE, ["-o", "--log"]),
    ("vae fit {i.csv} --from {v}".split() + VAE, ["-o", "--log"]),
    ("vae eval {v} {i.csv}".split(), ["--out"]),
    ("vae sample {v} --reconstruct {i.csv}".split(), ["--out", "--png"]),
    ("vae sample {v} --traverse {i.csv}".split(), ["--out", "--png"]),
]
TRAINS = {"fit", "sde fit", "vae fit"}


def normal():
    return random.gauss(0, 1)


def table(values, rows=60, head="a,b"):
    return (head + "\n" if head else "") + "".join(",".join(f"{v:.17g}" for v in values(i)) + "\n" for i in range(rows))


def paths(values, count=10, times=8):
    rows = [(i, *values(k)) for i in range(count) for k in range(times)]
    return table(lambda r: rows[r], len(rows), "trajectory,t,x")


def plain():
    return table(lambda i: (normal(), normal()))


def odd_tables():
    wide = ",".join(f"c{i}" for i in range(10000)) + "\n"
    huge = [10 ** random.uniform(-300, 300) for _ in range(60)]
    return {
        "largest": table(lambda i: ((-1) ** i * sys.float_info.max, normal())),
        "one largest": table(lambda i: (sys.float_info.max if i == 3 else normal(), normal())),
        "1e307": table(lambda i: (normal() * 1e307, normal())),
        "denormals": table(lambda i: (normal() * 5e-320, normal())),
        "least": table(lambda i: (5e-324 * (i % 7), normal())),
        "1e-200": table(lambda i: (normal() * 1e-200, normal())),
        "all scales": table(lambda i: (huge[i], normal())),
        "-0": table(lambda i: (-0.0 if i % 2 else 0.0, normal())),
        "constant": table(lambda i: (0.1, normal())),
        "constants": table(lambda i: (3.5, 7)),
        "constant 1e300": table(lambda i: (1e300, normal())),
        "1e15 + i": table(lambda i: (1e15 + i, normal())),
        "1e17 + i": table(lambda i: (1e17 + i, normal())),
        "one row": table(lambda i: (normal(), normal()), 1),
        "two rows": table(lambda i: (normal(), normal()), 2),
        "equal rows": "a,b\n" + "1,2\n" * 60,
        "header only": "a,b\n",
        "empty": "",
        "lines only": "\n\n\n",
        "BOM": "\ufeff" + plain(),
        "CRLF": plain().replace("\n", "\r\n"),
        "CR": plain().replace("\n", "\r"),
        "line in a name": '"a\nx",b\n' + plain()[4:],
        "quotes": "a,b\n" + "".join(f'"{normal()}","{normal()}"\n' for _ in range(60)),
        "NUL": plain().replace("\n", "\n\0", 1),
        "NUL at the end": plain() + "\0\0",
        "long number": "a,b\n" + "1" * 2000000 + ",2\n" + plain()[4:],
        "long name": "a" * 1000000 + ",b\n" + plain()[4:],
        "long text": "a,b\n" + "x" * 1000000 + ",2\n" + plain()[4:],
        "nan": table(lambda i: (normal(), float("nan") if i == 5 else normal())),
        "inf": table(lambda i: (normal(), float("inf") if i == 5 else normal())),
        "empty fields": "a,b\n" + ",\n" * 60,
        "ragged": "a,b\n1,2\n3\n" + plain()[4:],
        "same names": "a,a\n" + plain()[4:],
        "no names": ",\n" + plain()[4:],
        "one column": table(lambda i: (normal(),), 60, "a"),
        "10,000 columns": wide + "".join(",".join(f"{normal():.3g}" for _ in range(10000)) + "\n" for _ in range(8)),
        "categories": "a,b\n" + "".join(f"{normal()},{'xyz'[i % 3]}\n" for i in range(60)),
        "a category each": "a,b\n" + "".join(f"{normal()},k{i}\n" for i in range(60)),
        "bits": table(lambda i: (i % 2, i // 2 % 2)),
        "large integers": table(lambda i: (random.randrange(2**60), random.randrange(2**53))),
        "1e30 once": table(lambda i: (1e30 if i == 7 else normal(), normal())),
        "nearly all equal": table(lambda i: (1.5, 2.5) if i < 58 else (normal(), normal())),
        "collinear": table(lambda i: (i, 2 * i + 1)),
        "hexadecimal": "a,b\n" + "0x1p3,1\n" * 60,
        "1e99999": "a,b\n1e99999999999999999999,1\n" + plain()[4:],
        "1e-99999": "a,b\n1e-99999999999999999999,1\n" + plain()[4:],
        "UTF-16": plain().encode("utf-16"),
    }


def odd_paths():
    return {
        "plain": paths(lambda k: (k / 10, normal())),
        "constant": paths(lambda k: (k / 10, 1)),
        "1e307": paths(lambda k: (k / 10, normal() * 1e307)),
        "1e-310": paths(lambda k: (k / 10, normal() * 1e-310)),
        "times of 1e307": paths(lambda k: (k * 1e307, normal())),
        "least times": paths(lambda k: (k * 5e-324, normal())),
        "one time": paths(lambda k: (1, normal())),
        "one path": paths(lambda k: (k / 10, normal()), 1),
        "one step": paths(lambda k: (k / 10, normal()), 1, 2),
        "one row": paths(lambda k: (k / 10, normal()), 1, 1),
        "times of 1e17": paths(lambda k: (1e17 + k, normal())),
        "1e300 once": paths(lambda k: (k / 10, 1e300 if k == 3 else normal())),
        "-0": paths(lambda k: (k / 10, -0.0 if k % 2 else 0.0)),
    }


class Attack:
    def __init__(self, program):
        self.program, self.count, self.failures = program, 0, 0

    def run(self, arguments):
        """Status, stdout and stderr; None if the command took longer than a minute."""
        self.count += 1
        try:
            done = subprocess.run(
                [self.program, *arguments], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False
            )
        except subprocess.TimeoutExpired:
            self.fail("takes longer than a minute", arguments)
            return None
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def fail(self, what, arguments):
        self.failures += 1
        print(f"FAILED: {what}: hollow {' '.join(arguments)}", flush=True)

    def odd(self, arguments):
        """A command on odd input; is its status 0?"""
        done = self.run(arguments)
        if not done:
            return False
        status, out, err = done
        if status not in (0, 1, 2):
            self.fail(f"status {status}", arguments)
        elif status and not err.strip():
            self.fail("fails without a word", arguments)
        elif status == 0 and re.search(r"\bnan\b|\binf\b", out):
            self.fail("prints nan or inf with status 0", arguments)
        elif "\0" in err or len(err) > 20000:
            self.fail("a message that cannot be shown", arguments)
        return status == 0

    def tell(self, kind):
        print(json.dumps({"attack": kind, "commands": self.count, "failures": self.failures}), flush=True)


def contents(folder):
    """The hash of every file, whatever links lead to it."""
    found = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[path] = hashlib.sha256(file.read()).hexdigest()
    return found


def write(path, text):
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def make_inputs(program):
    for name in ("d.csv", "e.csv"):
        write(name, table(lambda i: (normal(), normal()), 200))
    write("p.csv", paths(lambda k: (k / 10, normal()), 20, 20))
    for name in ("i.csv", "j.csv"):
        write(name, table(lambda i: [random.randrange(2) for _ in range(16)], 100, ""))
    for name, text in (("c", "b\n1\n2\n"), ("start", "x\n.1\n"), ("given", "t,x\n0,.1\n1,.2\n"), ("point", "t,x\n0,.1\n")):
        write(name + ".csv", text)
    for arguments in (
        ["fit", "d.csv", "-o", "m", *FLOW],
        ["fit", "d.csv", "-o", "mc", "--context", "b", *FLOW],
        ["sde", "fit", "p.csv", "-o", "s", *SDE],
        ["vae", "fit", "i.csv", "-o", "v", "--image", "4x4", *VAE],
    ):
        subprocess.run([program, *arguments], capture_output=True, check=False)  # a bad model is good enough


def disguise(way, target, option, command):
    """The name that the input then has, and that of the output which is the same file; None if there is none."""
    end = os.path.splitext(target)[1]
    if way == "name":
        return target, target
    if way == "up":
        return target, "sub/../" + target
    if way == "link":
        os.symlink(target, "link.csv")
        return target, "link.csv"
    if way == "links":
        os.symlink(target, "first")
        os.symlink("first", "second.csv")
        return target, "second.csv"
    if way == "hard link":
        os.link(target, "hard.csv")
        return target, "hard.csv"
    if way == "the end of a link":
        os.rename(target, "real" + end)
        os.symlink("real" + end, target)
        return target, "real" + end
    if option == "-o" and command in TRAINS:  # way: the suffix of a file that is named after the model
        os.rename(target, "new" + way)
        return "new" + way, "new"
    return None


def inputs_as_outputs(program, folder):
    attack = Attack(program)
    base, work = os.path.join(folder, "base"), os.path.join(folder, "work")
    os.mkdir(base)
    os.chdir(base)
    make_inputs(program)
    for words, options in CALLS:
        inputs = [w[1:-1] for w in words if w[0] == "{"]
        command = " ".join(words[: 2 if words[0] in ("sde", "vae") else 1])
        cases = [(o, t) for o in options for t in inputs]
        ways = ("name", "up", "link", "links", "hard link", "the end of a link", ".ckpt", ".lock")
        for (option, target), way in ((c, w) for c in cases for w in ways):
            os.chdir(folder)
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(base, work)
            os.chdir(work)
            os.mkdir("sub")
            names = disguise(way, target, option, command)
            if not names:
                continue
            arguments = [(names[0] if w[1:-1] == target else w[1:-1]) if w[0] == "{" else w for w in words]
            arguments += [option, names[1]] + (["-o", "other"] if option == "--log" else [])
            before = contents(work)
            done = attack.run(arguments)
            after = contents(work)
            if any(after.get(path) != before[path] for path in before):
                attack.fail(f"{way}: changes or deletes its input", arguments)
            elif done and done[0] != 2:
                attack.fail(f"{way}: status {done[0]}", arguments)
    attack.tell("inputs as outputs")
    return attack.failures


def odd_models(attack, name, context):
    """Density models of an odd table, and all that is made with them."""
    for extra in (FLOW, ["--members", "mixture", "--threads", "1", "--quiet"], ["--context", "b", *FLOW]):
        if not attack.odd(["fit", name, "-o", "m", *extra]):
            continue
        for more in ([], ["--append"], ["--worst", "3"]):
            attack.odd(["logp", "m", name, "--threads", "1", *more])
        attack.odd(["sample", "m", "--threads", "1", *(["--context", name] if extra[0] == "--context" else ["-n", "20"])])
        attack.odd(["report", "m", name, "-o", "page.html", "--threads", "1"])
        attack.odd(["calibrate", "m", name, "--threads", "1"])
        attack.odd(["logp", "m", context, "--threads", "1", "--json"])


def odd_commands(program, folder):
    attack = Attack(program)
    os.chdir(folder)
    write("far.csv", "a,b\n1e308,0\n-1e308,1e308\n5e-324,-0\n1e155,1e155\n")
    for title, text in odd_tables().items():
        name = re.sub(r"\W", "_", title) + ".csv"
        write(name, text)
        odd_models(attack, name, "far.csv")
        for likelihood in ("bernoulli", "gaussian"):
            if attack.odd(["vae", "fit", name, "-o", "v", "--likelihood", likelihood, *VAE]):
                attack.odd(["vae", "eval", "v", name, "--threads", "1"])
                attack.odd(["vae", "eval", "v", "far.csv", "--threads", "1"])
                attack.odd(["vae", "sample", "v", "-n", "5", "--threads", "1"])
                attack.odd(["vae", "sample", "v", "--reconstruct", name, "--threads", "1"])
                attack.odd(["vae", "sample", "v", "--reconstruct", "far.csv", "--threads", "1"])
                attack.odd(["report", "v", name, "-o", "page.html", "--threads", "1"])
    for title, text in odd_paths().items():
        name = "paths_" + re.sub(r"\W", "_", title) + ".csv"
        write(name, text)
        for extra in (SDE, ["--method", "fp", "--iters", "20", "--hidden", "8", "--quiet"]):
            if os.path.exists("s"):
                os.unlink("s")
            attack.odd(["sde", "fit", name, "-o", "s", *extra])
            if os.path.exists("s"):  # also one that is not good
                attack.odd(["sde", "eval", "s", name])
                attack.odd(["sde", "sample", "s", "-n", "5"])
                attack.odd(["report", "s", name, "-o", "page.html", "--threads", "1"])
    attack.tell("odd tables")
    return attack.failures


def main() -> int:
    program = os.path.abspath(sys.argv[1])
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        failures = inputs_as_outputs(program, folder)
        failures += odd_commands(program, folder)
        os.chdir("/")
    return failures > 0


sys.exit(main())
