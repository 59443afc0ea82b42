#!/bin/sh
# demo.sh [BUILD] - a tour of hollow in about two minutes: a density model of real data, a stochastic equation, an autoencoder, the
# method in a picture, and its cost. All results are in BUILD/demo.
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
The VIX index measures the expected volatility of stock markets. Each row of data/vix/train.csv is a day: the logarithm of the index
and its change to the next day. The model of their joint density is a weighted sum of mixtures and of a continuous flow with exact
trace; the weights are chosen on held-out days.

END
"$hollow" fit data/vix/train.csv -o "$out/vix.hollow" --iters 450 --plot "$out"
echo
echo "Log-densities of days that were not used for training (data/vix/test.csv):"
"$hollow" logp "$out/vix.hollow" data/vix/test.csv --out "$out/vix_logp.csv"
echo
echo "Three days drawn from the model:"
"$hollow" sample "$out/vix.hollow" -n 3

heading "A stochastic equation (hollow sde fit)"
cat <<END
The same index as one time series. The drift is its mean rate of change, the diffusion the size of its random fluctuations, both as
functions of its level.

END
"$hollow" sde fit data/vix/daily.csv --columns log_vix --time t --method pseudo-ml -o "$out/vix_sde.hollow" --plot "$out/sde"
printf 't,log_vix\n0,2.5\n0,2.9\n0,3.5\n' >"$out/points.csv"
echo "Drift f and diffusion g per year, and log p, at VIX 12, 18 and 33:"
"$hollow" sde grid "$out/vix_sde.hollow" "$out/points.csv"

heading "An autoencoder of images (hollow vae fit, sample)"
cat <<END
The data are 6,000 generated images of 16 x 16 pixels: discs and rings of random position and size, with some wrong pixels. An
autoencoder with 4 latent values, whose posterior is a continuous flow with exact trace, is trained; then 100 images are drawn from it.

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

heading "The method (hollow paper fig1)"
cat <<END
In a hollow network f_i = tau(x_i, h_i), where h_i does not depend on x_i. One pass with h held fixed therefore gives the exact diagonal
of the Jacobian, the derivatives of f_i with respect to x_i. The program computes the Jacobian of a random network by this method and by
brute force, checks that they agree, and measures the time of both for increasing dimension.

END
"$hollow" paper fig1 --out "$out"

heading "The cost on this machine (hollow bench ddim --case b)"
cat <<END
f alone, f with its exact diagonal D f, and a training step with all gradients, for 1000 rows of 43 dimensions on one thread.
'peak' is the fraction of the processor's peak performance, 'masks' the speed-up from skipping masked weights. The same numbers are
printed as a line of JSON.

END
"$hollow" bench ddim --case b --seconds 0.3

heading "Done"
if [ -f "$out/fig1_jacobian.png" ] && [ -f "$out/fig1_time.png" ]; then
    echo "The pictures:"
    echo "  $out/density.png         the data, the learned density, and samples from it"
    echo "  $out/training.png        training and validation loss"
    echo "  $out/sde/equation.png    drift and diffusion of the index"
    echo "  $out/images.png          100 images drawn from the autoencoder"
    echo "  $out/fig1_jacobian.png   the Jacobian, split into its diagonal and hollow parts"
    echo "  $out/fig1_time.png       the time of D f against brute force"
else
    echo "There are no pictures because gnuplot is not installed."
fi
echo "The numbers: $out/fig1_jacobian.csv, fig1_factors.csv, fig1_time.csv, fig1.json"
echo "More: $hollow help"
