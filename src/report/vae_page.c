/* vae_page.c - the page of an autoencoder and its JSON text. */
#include <math.h>

#include "report/report.h"

void hl_vae_page_head(const hl_report *r, hl_page *p)
{
    const hl_vae_report *v = &r->vae;
    hl_page_put(p, "<div class=\"tiles\">\n");
    hl_report_tile(p, (hl_report_mean){ v->result.elbo, v->result.elbo_error },
                   "ELBO, nats per row: a lower bound of log p");
    hl_report_tile(p, (hl_report_mean){ v->over_independent, NAN },
                   v->gaussian ? "nats per row above independent normal values"
                               : "nats per row above independent pixels");
    hl_report_tile(p, (hl_report_mean){ v->result.reconstruction, NAN }, "reconstruction: log p(x | z)");
    hl_report_tile(p, (hl_report_mean){ v->result.log_ratio, NAN }, "log p(z) &minus; log q(z | x)");
    hl_page_add(p, "<div class=\"tile\"><b>%zu of %zu</b><span>latent columns are active</span></div>\n</div>\n",
                v->result.active, v->latent);
    hl_page_put(
        p, "<nav><a href=\"#pictures\">Pictures</a> <a href=\"#samples\">Samples</a> <a href=\"#units\">Units</a> <a "
           "href=\"#training\">Training</a> <a href=\"#model\">Model</a></nav>\n");
}

static void put_samples(const hl_report_distance *d, hl_page *p)
{
    hl_page_put(p, "<section id=\"samples\"><h2>Samples</h2>\n<p class=\"soft\">");
    if (!d->rows) {
        hl_page_put(p, "Rows and samples are compared from 40 rows on.</p></section>\n");
        return;
    }
    hl_page_count(p, d->rows);
    hl_page_put(p,
                " rows and as many samples from the prior, with the noise of p(x | z), compared by their energy "
                "distance.</p>\n<div class=\"scroll\"><table><tr><th class=\"name\">sets</th><th>distance</th><th>of "
                "the largest possible</th><th>p</th></tr>\n<tr><td class=\"name\">rows and samples</td>");
    hl_report_cell_of(p, d->distance, 3);
    hl_page_put(p, "<td>");
    hl_page_percent(p, d->share);
    hl_page_put(p, "</td><td>");
    hl_page_p_value(p, d->p);
    hl_page_put(p, "</td></tr>\n<tr><td class=\"name\">two halves of the rows: what chance makes</td>");
    hl_report_cell_of(p, d->halves, 3);
    hl_page_put(p, "<td></td><td></td></tr>\n</table></div></section>\n");
}

static void put_units(const hl_vae_report *v, hl_page *p)
{
    enum { MOST = 256 };
    size_t n = v->latent < MOST ? v->latent : MOST;
    hl_plot plot = { .page = p,
                     .title = "Variance of the posterior mean over rows",
                     .x_label = "latent column, by variance",
                     .y_label = "variance",
                     .low = { 0, 0 },
                     .high = { (double)n, 1.05 * fmax(v->variance[0], 0.02) } };
    hl_page_put(p, "<section id=\"units\"><h2>Units</h2>\n"
                   "<p class=\"soft\">Columns below the dashed line (variance 0.01) carry no information; the decoder "
                   "does not use them.</p>\n");
    hl_page_put(p, "<div class=\"figures\">");
    hl_plot_open(&plot);
    hl_plot_bars(&plot, "bars", n, 0, (double)n, v->variance);
    hl_plot_line(&plot, "rule", 2, (const double[]){ 0, (double)n }, (const double[]){ 0.01, 0.01 });
    hl_plot_close(&plot);
    hl_page_put(p, "</div></section>\n");
}

void hl_vae_page_body(const hl_report *r, hl_page *p)
{
    static const char *const titles[] = { "Samples from the prior", "Rows of the data, with reconstructions below",
                                          ("Traversals of the most active columns, one per line, from \xe2\x88\x92"
                                           "2 to 2") };
    const hl_vae_report *v = &r->vae;
    hl_page_put(p, "<section id=\"pictures\"><h2>Pictures</h2>\n<div class=\"figures\">\n");
    for (size_t k = 0; k < HL_REPORT_SHEETS; k++)
        if (r->sheet[k].pixels)
            hl_page_picture(p, titles[k], r->sheet[k].width, r->sheet[k].height, r->sheet[k].channels,
                            r->sheet[k].pixels);
    hl_page_put(p, "</div>\n");
    if (!r->sheet[0].pixels)
        hl_page_put(p, "<p class=\"soft\">The rows are not images, or the images are too large for this page.</p>\n");
    hl_page_put(p, "</section>\n");
    put_samples(&v->samples, p);
    put_units(v, p);
    hl_report_page_losses(1,
                          &(hl_report_losses){ "\xe2\x88\x92"
                                               "ELBO, training and validation",
                                               "nats a row", v->courses, v->course },
                          p);
    hl_page_put(p, "<section id=\"model\"><h2>Model</h2>\n");
    hl_report_facts_open(r->data, p);
    hl_page_count(p, v->rows);
    hl_page_put(p, " of ");
    hl_page_count(p, v->total);
    hl_page_put(p, " rows");
    hl_report_fact(p, "Posterior");
    hl_page_text(p, v->posterior);
    hl_report_fact(p, "Values per row, values per code");
    hl_page_add(p, "%zu, %zu", v->dim, v->latent);
    hl_report_facts_close(r, p);
    hl_page_put(p, "</section>\n");
}

void hl_vae_put_json(const hl_report *r, hl_json_writer *w)
{
    const hl_vae_report *v = &r->vae;
    hl_report_put_count(w, "total", v->total);
    hl_report_put_count(w, "rows", v->rows);
    hl_report_put_count(w, "known", v->known);
    hl_report_put_count(w, "trained", v->trained);
    hl_report_put_count(w, "dim", v->dim);
    hl_report_put_count(w, "latent", v->latent);
    hl_json_put_text(w, "posterior", v->posterior);
    hl_report_put_mean(w, "elbo", (hl_report_mean){ v->result.elbo, v->result.elbo_error });
    hl_report_put_real(w, "reconstruction", v->result.reconstruction);
    hl_report_put_real(w, "log_ratio", v->result.log_ratio);
    hl_report_put_real(w, "over_independent", v->over_independent);
    hl_report_put_count(w, "active", v->result.active);
    hl_report_put_array(w, "variance", v->latent, v->variance);
    hl_json_open(w, "samples", '{');
    hl_report_put_count(w, "rows", v->samples.rows);
    hl_report_put_real(w, "distance", v->samples.rows ? v->samples.distance : NAN);
    hl_report_put_real(w, "halves", v->samples.rows ? v->samples.halves : NAN);
    hl_report_put_real(w, "share", v->samples.rows ? v->samples.share : NAN);
    hl_report_put_real(w, "p", v->samples.rows ? v->samples.p : NAN);
    hl_json_close(w, '}');
    hl_report_put_training(v->courses, v->course, "training", w);
}
