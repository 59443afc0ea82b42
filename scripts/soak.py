#!/usr/bin/env python3
"""soak.py PROGRAM SECONDS [SEED]: run the commands of hollow again and again, chosen at random, a third of them killed (SIGKILL, SIGTERM, SIGINT)
at a random moment; what must hold is checked after each.

A command that was let alone exits with the status and writes the bytes of its first run. One that was killed leaves the model that was there or
none, and a fit that is resumed ends with the bytes of one that was not disturbed. The largest memory of a command does not grow with time, no
process and no temporary file is left. Prints a line of JSON and exits with 1 if a check failed."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FIT = "fit d.csv -o {out} --members flow --hidden 8 --width 8 --features 2 --threads 2 --quiet"
SDE = "sde fit p.csv -o {out} --method pseudo-ml --hidden 8 --quiet --iters 200"
VAE = "vae fit v.csv -o {out} --net fc --latent 2 --posterior hollow --quiet --iters 60"
COMMANDS = {  # {out}: a file that the command writes; the others write to stdout
    "fit": FIT + " --iters 100",
    "fit, all members": "fit d.csv -o {out} --iters 30 --quiet",
    "fit maf": "fit d.csv -o {out} --flow maf --members flow --iters 40 --quiet",
    "logp": "logp m.hollow d.csv --quiet",
    "logp bdf-auto": "logp m.hollow d.csv --solver bdf-auto --quiet",
    "sample": "sample m.hollow -n 500 --quiet",
    "sample to a file": "sample m.hollow -n 500 --quiet --out {out}",
    "calibrate": "calibrate m.hollow d.csv --quiet",
    "report": "report m.hollow d.csv --rows 100 --draws 100 --quiet -o {out}",
    "info": "info m.hollow",
    "sde fit": SDE,
    "sde sample": "sde sample s.hollow -n 20 --t0 0 --quiet",
    "sde grid": "sde grid s.hollow p.csv --quiet",
    "sde eval": "sde eval s.hollow p.csv --quiet",
    "vae fit": VAE,
    "vae eval": "vae eval a.hollow v.csv --quiet",
    "vae sample": "vae sample a.hollow -n 5 --quiet",
    "a table that is not there": "logp m.hollow nosuch.csv",
    "a damaged model": "info damaged.hollow",
}
KILLS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
RESUMED = {"fit", "sde fit", "vae fit"}  # with a checkpoint, from which they go on


def make_data(rng):
    with open("d.csv", "w") as file:
        for _ in range(200):
            file.write(f"{rng.gauss(0, 1):.6f},{rng.random() ** 2:.6f}\n")
    with open("p.csv", "w") as file:
        file.write("trajectory,t,x\n")
        for k in range(30):
            x = rng.gauss(0, 1)
            for i in range(8):
                file.write(f"{k},{i / 4},{x:.6f}\n")
                x += -0.25 * x + rng.gauss(0, 0.3)
    with open("v.csv", "w") as file:
        for _ in range(200):
            file.write(",".join(str(int(rng.random() < (c % 4 + 1) / 5)) for c in range(16)) + "\n")


class Soak:
    def __init__(self, program, seed):
        self.program, self.rng = program, random.Random(seed)
        self.runs = self.killed = self.resumed = 0
        self.failures, self.first, self.memory, self.length = [], {}, {}, {}

    def start(self, command):
        """Start a command; its streams go to files."""
        with open("stdout", "wb") as out, open("stderr", "wb") as err:
            return subprocess.Popen(
                [self.program, *command.split()], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip

    def finish(self, process):
        """Its exit status, or minus its signal, and its largest memory in KB."""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.runs += 1
        return process.returncode, usage.ru_maxrss

    def fail(self, name, text):
        with open("stderr", errors="replace") as file:
            said = file.read(300).strip()
        self.failures.append(f"{name}: {text}: {said}")
        print(self.failures[-1], file=sys.stderr)

    def result(self, status, path):
        """What must be the same every time: the status, what was printed and the file that was written."""
        parts = [status]
        for name in ("stdout", path):
            if os.path.exists(name):
                with open(name, "rb") as file:
                    parts.append(hashlib.sha256(file.read()).hexdigest())
        return parts

    def clear(self, path):
        for name in os.listdir("."):
            if name.startswith(path):
                os.remove(name)

    def undisturbed(self, name, extra=""):
        begun = time.monotonic()
        status, memory = self.finish(self.start(COMMANDS[name].format(out="out.hollow") + extra))
        got = self.result(status, "out.hollow")
        if status < 0 or status > 2:
            self.fail(name, f"status {status}")
        elif got != self.first.setdefault(name, got):
            self.fail(name, f"another result{' after it was killed and resumed' if extra else ''}: status {status}")
        if not extra:
            self.memory.setdefault(name, []).append(memory)
            self.length[name] = time.monotonic() - begun

    def kill(self, name):
        """Kill it; the exit status must be that of the signal or of its end. A fit then goes on."""
        number = self.rng.choice(KILLS)
        save = " --save-every 0" if name in RESUMED else ""
        process = self.start(COMMANDS[name].format(out="out.hollow") + save)
        time.sleep(self.rng.random() * self.length.get(name, 0.5) * 1.2)
        os.kill(process.pid, number)
        status, _ = self.finish(process)
        ends = {-number, 128 + number, 0, 1, 2} if number != signal.SIGKILL else {-number, 0, 1, 2}
        self.killed += 1
        if status not in ends:
            self.fail(name, f"killed by {number.name}: status {status}")
        if status != 0 and number == signal.SIGKILL and os.path.exists("out.hollow") and self.result(0, "out.hollow")[2:] != self.first[name][2:]:
            self.fail(name, "a file that is not the whole one")
        if name in RESUMED and os.path.exists("out.hollow.ckpt"):
            self.resumed += 1
            self.undisturbed(name, save + " --resume")

    def once(self, name):
        self.clear("out.hollow")
        if name in self.first and self.rng.random() < 1 / 3:
            self.kill(name)
        else:
            self.undisturbed(name)
            left = [f for f in os.listdir(".") if f.startswith("out.hollow") and f != "out.hollow"]
            if left:
                self.fail(name, f"left behind: {left}")

    def check_memory(self):
        for name, used in self.memory.items():
            quarter = max(len(used) // 4, 1)
            if max(used[-quarter:]) > 1.2 * max(used[:quarter]) + 4000:
                self.fail(name, f"memory grew from {max(used[:quarter])} to {max(used[-quarter:])} KB")


def main():
    program, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    soak = Soak(program, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    work = tempfile.mkdtemp(prefix="soak")
    os.chdir(work)
    make_data(soak.rng)
    for command, path in ((FIT + " --iters 100", "m.hollow"), (SDE, "s.hollow"), (VAE, "a.hollow")):
        soak.finish(soak.start(command.format(out=path)))
    with open("m.hollow", "rb") as file:
        model = bytearray(file.read())
    model[len(model) // 2] ^= 4
    with open("damaged.hollow", "wb") as file:
        file.write(model)
    kept = sorted(os.listdir("."))
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        soak.once(soak.rng.choice(list(COMMANDS)))
    soak.clear("out.hollow")
    soak.check_memory()
    if sorted(set(os.listdir(".")) - {"stdout", "stderr"}) != sorted(set(kept) - {"stdout", "stderr"}):
        soak.fail("files", f"left behind: {sorted(set(os.listdir('.')) - set(kept))}")
    largest = max(max(used) for used in soak.memory.values())
    print(json.dumps({"soak": round(time.monotonic() - begun), "commands": len(soak.first), "runs": soak.runs, "killed": soak.killed,
                      "resumed": soak.resumed, "largest_kb": largest, "failures": len(soak.failures)}))  # fmt: skip
    shutil.rmtree(work)
    sys.exit(1 if soak.failures else 0)


main()
