#!/bin/sh
# test_cli_report.sh PROGRAM - hollow report: the page, its numbers against hollow logp and NumPy, wrong arguments, full disks.
set -u
. "$(dirname "$0")/cli_support.sh"
here=$(cd "$(dirname "$0")" && pwd)
data=$work/data.csv
make_rows() {
    awk -v seed="$1" -v rows="$2" 'BEGIN { srand(seed); for (i = 0; i < rows; i++) {
        u = sqrt(-2 * log(1 - rand())); v = 6.283185307 * rand(); x = u * cos(v); y = u * sin(v)
        printf "%.9g,%.9g,%.9g\n", x, 0.5 * y + x * x, rand() < 0.3 ? x + 5 : y } }'
}
name='<script>alert("x")</script>'
(echo "a,\"<script>alert(\"\"x\"\")</script>\",c" && make_rows 3 600) >"$data"
(echo "a,\"<script>alert(\"\"x\"\")</script>\",c" && make_rows 4 500) >"$work/new.csv"
model=$work/m.hollow
expect 0 fit "$data" -o "$model" --members mixture --threads 1 --quiet
page=$work/page.html

expect 0 report "$model" "$work/new.csv" -o "$page" --draws 500
stdout_has "nats per row above that of a normal distribution"
stderr_has "page.html is written"
file_there "$page"
if grep -q '<script>alert' "$page"; then fail "the name of a column became a script"; else pass; fi
if grep -q "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" "$page"; then pass; else fail "no name of a column"; fi
if [ "$(wc -c <"$page")" -lt 1000000 ]; then pass; else fail "the page is too large"; fi
cp "$page" "$work/first.html"
expect 0 report "$model" "$work/new.csv" -o "$page" --draws 500 --threads 2 --quiet
stderr_empty
same "$page" "$work/first.html"

# ---- numbers ----

expect 0 report "$model" "$work/new.csv" --json --draws 500
cp "$out" "$work/report.json"
json "$out" "j['rows'] == 500 and j['total'] == 500 and j['failed'] == 0 and j['dim'] == 3 and len(j['worst']) == 20"
json "$out" "j['columns'][0]['distance'] >= j['columns'][1]['distance'] >= j['columns'][2]['distance']"
expect 0 logp "$model" "$work/new.csv" --worst 20 --json
cp "$out" "$work/worst.json"
expect 0 logp "$model" "$work/new.csv"
cp "$out" "$work/logp"
expect 0 sample "$model" -n 500 --seed 0 --out "$work/draws.npy"
if python3 -c 'import numpy' 2>/dev/null; then
    if python3 - "$work" <<'END' 2>"$work/python"; then
import csv, json, sys
import numpy as np
work = sys.argv[1]
r = json.load(open(work + "/report.json"))
logp = np.loadtxt(work + "/logp")
rows = list(csv.reader(open(work + "/new.csv")))
names, x = rows[0], np.array(rows[1:], float)
draws = np.load(work + "/draws.npy")
near = lambda a, b, e=1e-9: abs(a - b) <= e * max(1, abs(b)) or sys.exit(f"{a} and {b}")
near(r["logp"]["value"], logp.mean())
near(r["logp"]["error"], logp.std() / np.sqrt(len(logp)))
worst = json.load(open(work + "/worst.json"))["worst"]
assert [w["row"] for w in worst] == [w["row"] for w in r["worst"]]
for a, b in zip(worst, r["worst"]):
    near(a["logp"], b["logp"], 0)
# columns
for c in r["columns"]:
    a, b = np.sort(x[:, c["column"]]), np.sort(draws[:, c["column"]])
    assert c["name"] == names[c["column"]]
    both = np.sort(np.concatenate([a, b]))
    fa, fb = np.searchsorted(a, both, "right") / len(a), np.searchsorted(b, both, "right") / len(b)
    near(c["distance"], np.abs(fa - fb).max())
    near(c["wasserstein"], (np.abs(fa - fb)[:-1] * np.diff(both)).sum())
    near(c["mean"][0], a.mean()); near(c["mean"][1], b.mean())
    near(c["deviation"][0], a.std()); near(c["deviation"][1], b.std())
    near(c["outside"], ((b < a[0]) | (b > a[-1])).mean())
near(np.abs(np.array(r["correlation_data"]).reshape(3, 3) - np.corrcoef(x.T)).max(), 0)
# gains, by halves
def halves(fit):
    total = np.empty(len(x))
    for k in (0, 1):
        total[k::2] = fit(x[1 - k :: 2], x[k::2])
    return (logp - total).mean()
def independent(a, b):
    return (-0.5 * ((b - a.mean(0)) / a.std(0)) ** 2 - np.log(a.std(0)) - 0.5 * np.log(2 * np.pi)).sum(1)
def normal(a, b):
    s = np.cov(a.T, bias=True)
    n, d = len(a), a.shape[1]
    s = (n * s + d * np.diag(np.diag(s))) / (n + d)
    z = b - a.mean(0)
    return -0.5 * (z @ np.linalg.inv(s) * z).sum(1) - 0.5 * np.linalg.slogdet(2 * np.pi * s)[1]
near(r["over_independent"]["value"], halves(independent), 1e-8)
near(r["over_normal"]["value"], halves(normal), 1e-8)
# energy distance of 400 rows of each
pick = np.arange(400) * 500 // 400
a, b = x[pick] / x.std(0), draws[pick] / x.std(0)
dist = lambda p, q: np.sqrt(((p[:, None] - q[None]) ** 2).sum(-1))
e = 2 * dist(a, b).mean() - (dist(a, a).sum() + dist(b, b).sum()) / (400 * 399)
near(r["distance"]["distance"], e, 1e-5)
# the page shows these numbers
import re
text = re.sub("<[^>]*>", " ", open(work + "/page.html", encoding="utf-8").read()).replace("&minus;", "-").replace("\u2212", "-")
text = " ".join(text.split())
def shown(value, what):
    found = re.search(r"(-?[0-9.]+)(?: (?:&plusmn;|\u00b1) ([0-9.]+))? " + what, text)
    found or sys.exit(f"the page does not show: {what}")
    near(float(found.group(1)), value, 6e-4)
shown(logp.mean(), "mean log p of the rows")
shown(halves(independent), "nats per row above independent normal columns")
shown(halves(normal), "nats per row above a multivariate normal distribution")
END
        pass
    else
        fail "numbers: $(cat "$work/python")"
    fi
fi

# ---- a sample of a large table; the model alone; a context ----

expect 0 report "$model" "$work/new.csv" --json --rows 100 --draws 200
json "$out" "j['rows'] == 100 and j['total'] == 500"
cd "$work" || exit 1
expect 0 report "$model" --draws 200
stdout_has "No data were given"
file_there report.html
expect 0 fit "$data" -o "$work/conditional" --context c --members mixture --threads 1 --quiet
expect 0 report "$work/conditional" "$work/new.csv" -o "$page" --draws 200
expect 0 report "$work/conditional" -o "$page" --draws 200

# ---- files of earlier versions, without the course of a training ----

for old in density_1 density_2; do
    rm -f "$page"
    expect 0 report "$here/data/$old.hollow" -o "$page" --draws 200
    if grep -q 'contains no training history' "$page"; then pass; else fail "$old: the page does not say that there is no course"; fi
done

# ---- a stochastic equation ----

awk 'BEGIN { srand(5); print "trajectory,t,x"; for (k = 0; k < 40; k++) { x = 4 * rand() - 2; for (i = 0; i <= 20; i++) {
    printf "%d,%.9g,%.9g\n", k, i * 0.05, x; x += -x * 0.05 + 0.6 * sqrt(0.05) * sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) } } }' >"$work/paths.csv"
expect 0 sde fit "$work/paths.csv" -o "$work/s.hollow" --iters 20 --quiet
expect 0 report "$work/s.hollow" "$work/paths.csv" -o "$page"
stderr_has "page.html is written"
expect 0 report "$work/s.hollow" "$work/paths.csv" --json
json "$out" "len(j['training']) == len(j['training_density']) == 20 and j['training_density'][19]['iteration'] == 20"
if grep -q 'log p of the density</text>\|log p of the density<' "$page"; then pass; else fail "the page of an equation has no course"; fi
json "$out" "j['kind'] == 'sde' and j['rows'] == 840 and j['steps'] == 800 and len(j['columns']) == 1 and abs(j['columns'][0]['noise'] - 1) < 0.3"
expect 2 report "$work/s.hollow"
stderr_has "its report requires DATA"

# ---- an autoencoder ----

awk 'BEGIN { srand(7); for (i = 0; i < 60; i++) { u = rand() < 0.5; for (k = 0; k < 24; k++) printf "%s%d", k ? "," : "", rand() < 0.1 ? !u : u; print "" } }' >"$work/images.csv"
expect 0 vae fit "$work/images.csv" --image 4x6 -o "$work/v.hollow" --net linear --latent 2 --posterior vae --iters 50 --quiet
expect 0 report "$work/v.hollow" "$work/images.csv" -o "$page"
stderr_has "page.html is written"
expect 0 report "$work/v.hollow" "$work/images.csv" --json
json "$out" "len(j['training']) == 50 and j['training'][49]['validated'] == 50"
if grep -q 'ELBO, training and validation' "$page"; then pass; else fail "the page of an autoencoder has no course"; fi
json "$out" "j['kind'] == 'vae' and j['rows'] == 60 and j['latent'] == 2 and len(j['variance']) == 2"
expect 2 report "$work/v.hollow"
stderr_has "is an autoencoder: its report requires DATA"

# ---- what is wrong ----

if python3 -c 'import numpy' 2>/dev/null; then
    python3 -c "import numpy; x = numpy.ones((30, 3)); x[4, 1] = numpy.nan; numpy.save('$work/nan.npy', x)"
    expect 2 report "$model" "$work/nan.npy" -o "$page"
    stderr_has "row 5, column 'x2': nan is not a finite number"
    expect 0 report "$model" "$work/nan.npy" --drop-missing --json
    json "$out" "j['rows'] == 29"
fi

rm -f "$page"
expect 2 report "$model" "$work/none.csv" -o "$page"
expect 2 report "$work/new.csv" "$model" -o "$page"
expect 2 report "$model" "$work/new.csv" -o "$work/none/page.html"
expect 2 report "$model" "$work/new.csv" -o "$work/new.csv"
expect 2 report "$model" "$work/new.csv" -o "$work"
absent "$page"
if [ -w /dev/full ]; then
    expect 2 report "$model" "$work/new.csv" -o /dev/full
fi
if [ "$(id -u)" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=16k none "$work/small" 2>/dev/null; then
    expect 2 report "$model" "$work/new.csv" -o "$work/small/page.html" --draws 200
    if [ -z "$(ls -A "$work/small")" ]; then pass; else fail "half a page is left on a full disk"; fi
    umount "$work/small"
fi
finish test_cli_report
