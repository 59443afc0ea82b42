#!/bin/sh
# demo.sh [BUILD] - what hollow is about, in about a minute: a density model of real data, the idea behind it in a picture, and
# what it costs. Everything it makes is in BUILD/demo.
set -eu
build=${1:-build}
hollow=$build/hollow
out=$build/demo

if [ ! -x "$hollow" ]; then
    echo "demo.sh: $hollow is missing; run make first" >&2
    exit 2
fi

heading() {
    printf '\n== %s\n\n' "$1"
}

mkdir -p "$out"
heading "A density model (hollow fit, logp, sample)"
cat <<END
The VIX is a measure of how much stock markets are expected to move. Each row of data/vix/train.csv is a day: the logarithm of
the index, and how much it changed to the next day. Mixtures and a continuous flow with an exact
trace learn the joint density of both; days that were held out decide what each of them counts.

END
"$hollow" fit data/vix/train.csv -o "$out/vix.hollow" --iters 450 --plot "$out"
echo
echo "How well does it describe days it has not seen (data/vix/test.csv)?"
"$hollow" logp "$out/vix.hollow" data/vix/test.csv --out "$out/vix_logp.csv"
echo
echo "Three days drawn from the model:"
"$hollow" sample "$out/vix.hollow" -n 3

heading "A stochastic equation (hollow sde fit)"
cat <<END
The same index as one path: how it is drawn back (the drift) and how much it trembles (the diffusion), at every level.

END
"$hollow" sde fit data/vix/daily.csv --columns log_vix --time t --method pseudo-ml -o "$out/vix_sde.hollow" --plot "$out/sde"
printf 't,log_vix\n0,2.5\n0,2.9\n0,3.5\n' >"$out/points.csv"
echo "f and g, per year, and log p at VIX 12, 18 and 33:"
"$hollow" sde grid "$out/vix_sde.hollow" "$out/points.csv"

heading "An autoencoder of images (hollow vae fit, sample)"
cat <<END
6,000 images of 16 x 16 pixels are made here: a disc or a ring somewhere, of any size, with some pixels wrong. An autoencoder of 4
latent values, whose posterior is a continuous flow with an exact trace, learns them; then 100 images are drawn from it.

END
awk 'BEGIN { srand(1)
    for (n = 0; n < 6000; n++) {
        x = 5.5 + 4 * rand(); y = 5.5 + 4 * rand(); r = 3 + 2 * rand(); hole = r * (1.6 * rand() - 0.8); line = ""
        for (i = 0; i < 256; i++) {
            d = sqrt((i % 16 - x) ^ 2 + (int(i / 16) - y) ^ 2)
            line = line (i ? "," : "") ((d < r && d > hole) != (rand() < 0.03) ? 1 : 0)
        }
        print line
    } }' >"$out/images.csv"
"$hollow" vae fit "$out/images.csv" --image 16x16 --posterior hollow --latent 4 --epochs 25 -o "$out/images.hollow"
"$hollow" vae sample "$out/images.hollow" -n 100 --png "$out/images.png"

heading "The idea (hollow paper fig1)"
cat <<END
In a hollow network f_i = tau(x_i, h_i), and h_i never sees x_i. So the derivative of every f_i by its own x_i, the diagonal of
the Jacobian, comes out of one pass with h held fixed: exact, without brute force. The program now computes the Jacobian of
a random network both ways, checks that they agree, and measures what each costs as the dimension grows.

END
"$hollow" paper fig1 --out "$out"

heading "The cost on this machine (hollow bench ddim --case b)"
cat <<END
f alone, f with its exact diagonal D f, and a training step with all gradients, for 1000 rows of 43 dimensions on one thread.
The line of JSON is for programs, the table for people: 'peak' is the part of the processor's arithmetic that is put to use,
'masks' how much faster it is to skip what the masks exclude than to multiply zeros.

END
"$hollow" bench ddim --case b --seconds 0.3

heading "Done"
if [ -f "$out/fig1_jacobian.png" ] && [ -f "$out/fig1_time.png" ]; then
    echo "The pictures:"
    echo "  $out/density.png         the days, the density that was learnt, and days drawn from it"
    echo "  $out/training.png        how the training went"
    echo "  $out/sde/equation.png    drift and diffusion of the index"
    echo "  $out/images.png          100 images drawn from the autoencoder"
    echo "  $out/fig1_jacobian.png   the Jacobian, split into its diagonal and hollow parts"
    echo "  $out/fig1_time.png       the time of D f against brute force"
else
    echo "There are no pictures, as gnuplot is not installed."
fi
echo "The numbers: $out/fig1_jacobian.csv, fig1_factors.csv, fig1_time.csv, fig1.json"
echo "More: $hollow help"
