#!/bin/sh
# test_cli_vae.sh PROGRAM - hollow vae fit, eval and sample on small images: formats, bits, pictures, wrong input, Ctrl-C.
set -u
. "$(dirname "$0")/cli_support.sh"
small="--iters 30 --batch 20 --latent 3 --threads 1"
data=$work/data.csv
model=$work/m.hollow
none=$work/none.hollow

# images N SEED HIGH: N images of 4 x 6 with a bright row, of values 0 and HIGH.
images() {
    awk -v n="$1" -v seed="$2" -v high="$3" 'BEGIN { srand(seed); for (r = 0; r < n; r++) { k = int(4 * rand()); line = ""
        for (i = 0; i < 24; i++) { on = (int(i / 6) == k) != (rand() < 0.05); line = line (i ? "," : "") (on ? high : 0) } print line } }'
}
# packed FILE: 8 pixels a number.
packed() {
    awk -F, '{ line = ""; for (i = 0; i < NF / 8; i++) { b = 0; for (k = 1; k <= 8; k++) b = 2 * b + $(8 * i + k); line = line (i ? "," : "") b } print line }' "$1"
}
refused() {
    absent "$none"
    absent "$none.ckpt"
    for fragment; do stderr_has "$fragment"; done
}
images 120 1 1 >"$data"
packed "$data" >"$work/bits.csv"
images 60 2 200 >"$work/gray.csv"

# ---- help ----

for call in "vae" "vae --help" "vae help" "help vae"; do
    # shellcheck disable=SC2086
    expect 0 $call
    stdout_has "fit|eval|sample"
done
for name in fit eval sample; do
    expect 0 vae $name --help
    stdout_has "usage: hollow vae $name"
done
expect 2 vae train
stderr_has "commands are fit, eval, sample"

# ---- fit ----

# shellcheck disable=SC2086
expect 0 vae fit "$data" --image 4x6 -o "$model" $small --json --log "$work/log"
json "$out" "j['iteration'] == 30 and j['train_rows'] == 108 and j['valid_rows'] == 12 and j['validation'] > 0"
json "$work/log" "'loss' in j and 'beta' in j"
stderr_has "-ELBO"
absent "$model.ckpt"
# shellcheck disable=SC2086
expect 0 vae fit "$work/bits.csv" --bits --image 4x6 -o "$work/b.hollow" $small --quiet
stdout_empty
stderr_empty
same "$model" "$work/b.hollow"
for posterior in planar iaf sylvester ffjord hollow; do
    expect 0 vae fit "$data" --image 4x6 -o "$work/$posterior.hollow" --iters 4 --batch 20 --latent 3 --threads 1 --posterior $posterior --quiet
done
expect 0 vae fit "$work/gray.csv" --image 4x6 --dynamic --net small -o "$work/g.hollow" --iters 3 --batch 20 --latent 2 --threads 1
stderr_has "gray"
images 60 2 16 >"$work/dark.csv"
expect 0 vae fit "$work/dark.csv" --image 4x6 -o "$work/g.hollow" --iters 3 --batch 20 --latent 2 --threads 1
stderr_has "white is 255"
expect 0 vae fit "$data" --likelihood gaussian -o "$work/real.hollow" --iters 3 --latent 2 --threads 1 --quiet
# Values keep the digits that their units need.
awk 'BEGIN { srand(4); for (r = 0; r < 60; r++) print 1e12 + r % 7 "," rand() }' OFMT=%.17g CONVFMT=%.17g >"$work/far.csv"
expect 0 vae fit "$work/far.csv" --likelihood gaussian -o "$work/far.hollow" --net linear --iters 30 --latent 1 --threads 1 --quiet
expect 0 vae sample "$work/far.hollow" -n 20 --threads 1
if awk -F, '$1 < 1e12 - 20 || $1 > 1e12 + 30 { bad = 1 } END { exit bad || NR != 20 }' "$out"; then pass; else fail "$command: digits are lost"; fi
expect 0 vae sample "$work/far.hollow" -n 20 --draw --threads 1
if awk -F, '$1 < 1e12 - 40 || $1 > 1e12 + 50 { bad = 1 } END { exit bad || NR != 20 }' "$out"; then pass; else fail "$command: draws are not in the units"; fi
# Samples have the names of the columns. A constant column is named.
awk 'BEGIN { srand(6); print "a,b,c,d,e"; for (r = 0; r < 60; r++) print rand() "," 7 "," rand() "," rand() "," 8 }' >"$work/named.csv"
expect 0 vae fit "$work/named.csv" --likelihood gaussian -o "$work/named.hollow" --net linear --iters 30 --latent 1 --threads 1 --json
stderr_has "column 2 (b) is constant, and others are;"
json "$out" "j['constant_columns'] == 2"
expect 0 vae sample "$work/named.hollow" -n 2 --threads 1
if [ "$(head -1 "$out")" = "a,b,c,d,e" ] && [ "$(wc -l <"$out")" = 3 ]; then pass; else fail "$command: no header"; fi
cp "$out" "$work/drawn.csv"
expect 0 vae eval "$work/named.hollow" "$work/drawn.csv" --threads 1
# Columns in another order are not those of the model.
awk -F, '{ print $1 "," $2 "," $4 "," $3 "," $5 }' "$work/drawn.csv" >"$work/turned.csv"
expect 2 vae eval "$work/named.hollow" "$work/turned.csv" --threads 1
stderr_has "column 3 is 'd', but that of the model is 'c'"
stdout_empty
# Four columns of real numbers are no image of 2 x 2 pixels: each has its own scale.
awk 'BEGIN { srand(8); for (r = 0; r < 60; r++) print 100 * rand() "," .01 * rand() "," rand() "," 5 + rand() }' >"$work/four.csv"
expect 0 vae fit "$work/four.csv" --likelihood gaussian -o "$work/four.hollow" --net linear --iters 30 --latent 1 --threads 1 --quiet
expect 0 vae sample "$work/four.hollow" -n 50 --draw --threads 1
if awk -F, '{ s += $2 * $2 } END { exit !(sqrt(s / NR) < .03) }' "$out"; then pass; else fail "$command: columns share a scale"; fi
expect 0 report "$work/named.hollow" "$work/named.csv" --json
json "$out" "j['trained'] == 54 and 'used to train the model' in j['verdict'] and 'pixel' not in j['verdict']"
expect 0 vae fit "$data" --image 4x6 --from "$model" --freeze --posterior planar -o "$work/f.hollow" --iters 4 --latent 3 --threads 1 --quiet

# A row that the networks cannot compute with is an error, not a result.
awk 'BEGIN { for (i = 0; i < 24; i++) printf "%s%s", i ? "," : "", i == 3 ? "1e300" : "0"; print "" }' >"$work/beyond.csv"
expect 2 vae sample "$work/real.hollow" --reconstruct "$work/beyond.csv"
stderr_has "row 1: the code is not finite"
stdout_empty

# ---- eval ----

expect 0 info "$model"
stdout_has "an autoencoder"
expect 0 info "$model" --json
json "$out" "j['latent'] == 3 and j['posterior'] == 'vae'"
expect 0 vae eval "$model" "$data"
stdout_has "-ELBO"
expect 0 vae eval "$model" "$data" --iwae 20 --rows 30 --json
json "$out" "j['rows'] == 30 and j['k'] == 20 and j['iwae'] >= j['elbo'] and abs(j['elbo'] - (j['reconstruction'] - j['kl'])) < 1e-6"
cp "$out" "$work/one"
expect 0 vae eval "$model" "$work/bits.csv" --bits --iwae 20 --rows 30 --json --threads 2
json "$out" "j['rows'] == 30"
expect 0 vae eval "$work/hollow.hollow" "$data" --iwae 5 --rows 10
stdout_has "adaptive solver"
expect 2 vae eval "$work/ffjord.hollow" "$data" --iwae 5
stderr_has "hutchinson"
expect 0 vae eval "$work/ffjord.hollow" "$data" --iwae 5 --rows 10 --allow-biased
stdout_has "biased"
expect 0 vae eval "$model" "$data" --rows 5 --out "$work/rows.csv" --quiet
if [ "$(wc -l <"$work/rows.csv")" = 6 ]; then pass; else fail "six lines"; fi
if [ "$(head -n 1 "$work/rows.csv")" = elbo,reconstruction,kl,log_det ]; then pass; else fail "columns without IWAE"; fi
expect 0 vae eval "$model" "$data" --rows 5 --iwae 3 --out "$work/rows.csv" --quiet
if [ "$(head -n 1 "$work/rows.csv")" = elbo,reconstruction,kl,log_det,iwae,effective ]; then pass; else fail "columns with IWAE"; fi

# ---- sample ----

expect 0 vae sample "$model" -n 4
if [ "$(wc -l <"$out")" = 4 ]; then pass; else fail "four lines"; fi
expect 0 vae sample "$model" -n 2 --json
json "$out" "len(j['x']) == 2 and len(j['x'][0]) == 24 and j['rows'] == 2"
expect 0 vae sample "$model" -n 12 --png "$work/s.png"
stdout_empty
file_there "$work/s.png"
expect 0 vae sample "$model" --reconstruct "$data" -n 5 --png "$work/r.png" --out "$work/r.npy"
file_there "$work/r.npy"
expect 0 vae sample "$model" --traverse "$data" --png "$work/t.png"
if [ $have_python = yes ]; then
    if python3 -c '
import struct, sys, zlib
d = open(sys.argv[1], "rb").read()
assert d[:8] == b"\x89PNG\r\n\x1a\n"
at, data = 8, b""
while at < len(d):
    n, kind = struct.unpack(">I4s", d[at:at + 8]); body = d[at + 8:at + 8 + n]
    assert struct.unpack(">I", d[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + body)
    if kind == b"IHDR": w, h = struct.unpack(">II", body[:8])
    if kind == b"IDAT": data += body
    at += 12 + n
assert kind == b"IEND" and (w, h) == (10 * 14 + 2, 2 * 10 + 2) and len(zlib.decompress(data)) == h * (w + 1)
' "$work/s.png" 2>"$work/python"; then pass; else fail "s.png is no picture"; fi
fi
expect 2 vae sample "$work/real.hollow" --png "$none"
refused "not images"

# ---- wrong ----

printf '0,1,2\n1,0,300\n' >"$work/bad.csv"
expect 2 vae fit "$work/bad.csv" -o "$none"
refused "300 is not a pixel"
awk 'BEGIN { for (i = 0; i < 20; i++) print "0,1,0.5,1" }' >"$work/half.csv"
expect 2 vae fit "$work/half.csv" -o "$none"
refused "0.5 is not a pixel" "if gray values are between 0 and 1, scale them to 0..255"
expect 2 vae fit "$data" -o "$none" --net small
refused "rows of 24 values have no shape" "--image HxW"
expect 2 vae fit "$data" -o "$none" --image 5x5
refused "24 pixels"
expect 2 vae fit "$data" -o "$none" --image 24
refused "not of the form HxW or CxHxW"
expect 2 vae fit "$data" -o "$none" --latent 0
refused "--latent"
expect 2 vae fit "$data" -o "$none" --posterior glow
refused "sylvester"
expect 2 vae fit "$data" -o "$none" --flows 3
refused "no effect"
expect 2 vae fit "$data"
stderr_has "-o MODEL"
expect 2 vae fit "$data" -o "$data"
{ cat "$data" && head -n 1 "$data" | sed 's/^[01]/nan/'; } >"$work/missing.csv"
expect 2 vae eval "$model" "$work/missing.csv"
stderr_has "--drop-missing"
expect 0 vae eval "$model" "$work/missing.csv" --drop-missing --json
json "$out" "j['rows'] == 120"
stderr_has "skipped 1 rows with missing values"
expect 2 vae eval "$model" "$data" --allow-biased
stderr_has "--iwae"
expect 2 vae eval "$model" "$data" --iwae 0
expect 2 vae eval "$model" "$work/bad.csv"
expect 2 vae eval "$data" "$data"
expect 2 vae eval "$model" "$work/bits.csv"
head -c 1000 "$model" >"$work/cut.hollow"
expect 2 vae eval "$work/cut.hollow" "$data"
expect 2 vae eval "$work/none" "$data"

# ---- killed, and resumed ----

long="--iters 400 --batch 60 --latent 3 --threads 1 --image 4x6"
# shellcheck disable=SC2086
expect 0 vae fit "$data" -o "$work/whole.hollow" $long --quiet
# shellcheck disable=SC2086
killed_after_checkpoint "$work/parts.hollow" vae fit "$data" $long --quiet --save-every 0
if [ -e "$work/parts.hollow.ckpt" ]; then
    # shellcheck disable=SC2086
    expect 0 vae fit "$data" -o "$work/parts.hollow" $long --quiet --save-every 0 --resume
fi
same "$work/whole.hollow" "$work/parts.hollow"

finish test_cli_vae
