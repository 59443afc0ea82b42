#!/usr/bin/env python3
"""browser.py PROGRAM ROOT [SCREENSHOTS] - reports in Debian's headless Chromium.

Makes reports of small models, one with hostile names of columns, and opens each in a frame of a page that checks it: no message of the
console, no request, every figure has a size, another pair is drawn when it is chosen, a row's link marks the row, names are text. With a
folder, screenshots at 1280 and 400 pixels are written there.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
SHOTS = Path(sys.argv[3]) if len(sys.argv) > 3 else None
HOSTILE = ["<script>alert(1)</script>", "\"quoted\" 'name' &amp; </style>", "\u00e9" * 127 + "x", "plain"]

HARNESS = """<!doctype html><meta charset="utf-8"><style>iframe{width:%(width)dpx;height:400px;border:0}</style>
<iframe id="f" src="%(page)s"></iframe><pre id="result"></pre>
<script>
function pixels(d, id) {
  var c = d.getElementById(id), g = c.getContext('2d'), p = g.getImageData(0, 0, c.width, c.height).data, h = 7, ink = 0;
  for (var i = 0; i < p.length; i += 4) { h = (h * 31 + p[i] + 3 * p[i + 1] + 7 * p[i + 3]) | 0; ink += p[i + 3] > 0; }
  return [h, ink];
}
document.getElementById('f').onload = function () {
  var f = document.getElementById('f'), d = f.contentDocument, w = f.contentWindow, r = {};
  Array.prototype.forEach.call(d.querySelectorAll('details'), function (e) { e.open = true; });
  r.requests = w.performance.getEntriesByType('resource').map(function (e) { return e.name; });
  r.figures = 0; r.empty = [];
  Array.prototype.forEach.call(d.querySelectorAll('figure > svg, figure > canvas, figure > img'), function (e) {
    if (d.documentElement.classList.contains('live') && e.closest('.still')) return;
    var b = e.getBoundingClientRect();
    r.figures++;
    if (!(b.width > 40 && b.height > 40)) r.empty.push(e.outerHTML.slice(0, 80));
  });
  r.height = d.documentElement.scrollHeight;
  r.wide = d.documentElement.scrollWidth - d.documentElement.clientWidth;
  r.scripts = d.querySelectorAll('script:not([type])').length;
  r.text = d.body.textContent.replace(/\\s+/g, ' ').slice(0, 400);
  r.verdict = d.querySelector('.verdict').textContent;
  var x = d.getElementById('pair-x');
  if (x) {
    r.names = Array.prototype.map.call(x.options, function (o) { return o.textContent; });
    r.before = pixels(d, 'canvas-data');
    r.drawn = d.getElementById('pairs').getAttribute('data-drawn');
    x.value = String((+x.value + 1) %% x.options.length);
    x.dispatchEvent(new w.Event('change'));
    r.after = pixels(d, 'canvas-data');
    r.redrawn = d.getElementById('pairs').getAttribute('data-drawn');
    var link = d.querySelector('a[data-row]');
    if (link) { link.click(); r.marked = d.getElementById('pairs').getAttribute('data-drawn'); }
    r.cells = Array.prototype.map.call(d.querySelectorAll('#columns td.name'), function (e) { return e.textContent; });
  }
  document.getElementById('result').textContent = JSON.stringify(r);
};
</script>
"""


def run(*arguments: str) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"hollow {' '.join(arguments)}: {done.stderr}")


def chromium(*arguments: str) -> tuple[str, str]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        print("chromium is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
             "--disable-component-update", "--no-first-run", "--proxy-server=127.0.0.1:9", f"--user-data-dir={profile}", "--enable-logging=stderr",
             "--allow-file-access-from-files", *arguments],
            capture_output=True, text=True, timeout=120)  # fmt: skip
    return done.stdout, done.stderr


def write(path: Path, names: list[str], rows: list[list[float]]) -> None:
    def quote(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(map(quote, names)) + "\n")
        for row in rows:
            file.write(",".join(f"{value:.9g}" for value in row) + "\n")


def check(page: Path, width: int) -> dict:
    harness = page.with_suffix(f".{width}.check.html")
    harness.write_text(HARNESS % {"page": page.name, "width": width})
    out, err = chromium("--dump-dom", f"--window-size={max(width, 800)},2200", "--virtual-time-budget=4000", harness.as_uri())
    messages = [line for line in err.splitlines() if "CONSOLE" in line and ".check.html" not in line]
    assert not messages, messages
    text = out.split('<pre id="result">')[1].split("</pre>")[0]
    assert text, f"{page.name}: no result"
    for sign, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(sign, letter)
    r = json.loads(text)
    assert r["requests"] == [], r["requests"]
    assert r["figures"] >= 2 and not r["empty"], r["empty"]
    assert r["scripts"] == 1, r["scripts"]
    assert r["wide"] <= 0, f"{page.name} at {width}: wider than its window by {r['wide']}"
    if "names" in r:
        assert r["before"][1] > 100 and r["before"] != r["after"] and r["drawn"] != r["redrawn"], r
        assert r["marked"].split(",")[2] == "0", r["marked"]
    return r


def main() -> None:
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        rows = []
        for _ in range(900):
            a, b = random.gauss(0, 1), random.gauss(0, 1)
            rows.append([a, b + a * a, random.gauss(5 if random.random() < 0.3 else 0, 1), 100 * a + b])
        write(work / "train.csv", HOSTILE, rows[:600])
        write(work / "new.csv", HOSTILE, rows[600:])
        run("fit", str(work / "train.csv"), "-o", str(work / "m.hollow"), "--members", "mixture", "--quiet")
        run("report", str(work / "m.hollow"), str(work / "new.csv"), "-o", str(work / "hostile.html"), "--quiet")
        vix = ROOT / "data" / "vix"
        run("fit", str(vix / "train.csv"), "-o", str(work / "vix.hollow"), "--iters", "60", "--quiet")
        run("report", str(work / "vix.hollow"), str(vix / "test.csv"), "-o", str(work / "density.html"), "--quiet")
        run("report", str(work / "vix.hollow"), "-o", str(work / "alone.html"), "--quiet")
        us10y = ROOT / "data" / "us10y" / "monthly.csv"
        run("sde", "fit", str(us10y), "-o", str(work / "sde.hollow"), "--time", "t", "--columns", "yield", "--iters", "100", "--quiet")
        run("report", str(work / "sde.hollow"), str(us10y), "--time", "t", "-o", str(work / "sde.html"), "--quiet")
        with open(work / "images.csv", "w") as file:
            for _ in range(200):
                a, b = random.randrange(8), random.randrange(8)
                file.write(",".join(str(int(k % 8 == a or k // 8 == b)) for k in range(64)) + "\n")
        run("vae", "fit", str(work / "images.csv"), "--image", "8x8", "-o", str(work / "vae.hollow"), "--net", "linear", "--latent", "8",
            "--posterior", "vae", "--iters", "1000", "--quiet")  # fmt: skip
        run("report", str(work / "vae.hollow"), str(work / "images.csv"), "-o", str(work / "vae.html"), "--quiet")
        for width in (1280, 400):
            r = check(work / "hostile.html", width)
            shown = [name.replace("\n", " ") for name in HOSTILE]
            assert r["names"] == shown, r["names"]
            assert sorted(r["cells"]) == sorted(shown), r["cells"]
            for name in ("density", "sde", "vae"):
                r = check(work / f"{name}.html", width)
                if SHOTS:
                    SHOTS.mkdir(parents=True, exist_ok=True)
                    suffix = "" if name == "density" else f"_{name}"
                    chromium(f"--window-size={width},{r['height']}", f"--screenshot={SHOTS / f'report{suffix}_{width}.png'}",
                             (work / f"{name}.html").as_uri())  # fmt: skip
    print("browser: all checks passed")


main()
