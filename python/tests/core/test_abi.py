"""The definitions of _abi.py are those of the headers and of the C compiler; other libraries are refused."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hollownet
from hollownet import _abi as abi

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))
import generate  # noqa: E402

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")


class TestAbi(unittest.TestCase):
    def test_up_to_date(self):
        text = generate.OUTPUT.read_text()
        message = "python/hollownet/_abi.py does not agree with the headers; run python3 python/generate.py"
        self.assertTrue(text == generate.module(generate.parse()), message)

    @unittest.skipUnless(COMPILER, "no C compiler")
    def test_sizes_and_offsets(self):
        with tempfile.TemporaryDirectory() as directory:
            source, program = Path(directory, "offsets.c"), Path(directory, "offsets")
            source.write_text(generate.offsets(generate.parse()))
            subprocess.run([COMPILER, f"-I{ROOT / 'include'}", source, "-o", program], check=True)
            lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertGreater(len(lines), 300)
        for line in lines:
            name, *values = line.split()
            struct, _, member = name.partition(".")
            found = getattr(abi.STRUCTS[struct], member) if member else None
            expected = [ctypes.sizeof(abi.STRUCTS[struct])] if found is None else [found.offset, found.size]
            self.assertEqual([int(v) for v in values], expected, line)

    def refuse(self, source, words):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "libhollow.so")
            Path(directory, "other.c").write_text(source)
            subprocess.run([COMPILER, "-shared", "-fPIC", f"{directory}/other.c", "-o", path], check=True)
            environment = dict(os.environ, HOLLOW_LIBRARY=str(path))
            command = [sys.executable, "-c", "import hollownet"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    @unittest.skipUnless(COMPILER, "no C compiler")
    def test_other_libraries(self):
        self.refuse("int nothing;", ["is not the library of hollownet"])
        sizes = 'struct s {{ const char *name; unsigned long size; }} t[] = {{ {{ "hl_net_spec", 4 }}, {{ 0, 0 }} }};\n'
        functions = 'const char *hl_version(void) {{ return "{}"; }} struct s *hl_struct_sizes(void) {{ return t; }}\n'
        self.refuse((sizes + functions).format("0.0.9"), ["is version 0.0.9, but hollownet is version"])
        self.refuse((sizes + functions).format(abi.HL_VERSION), ["bytes, but hollownet expects"])

    def test_missing_library(self):
        environment = dict(os.environ, HOLLOW_LIBRARY="/nowhere/libhollow.so")
        command = [sys.executable, "-c", "import hollownet"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertIn("cannot load the library", done.stderr)

    def test_version(self):
        self.assertEqual(hollownet.__version__, abi.HL_VERSION)
        self.assertTrue(os.path.exists(hollownet.library_path))


if __name__ == "__main__":
    unittest.main()
