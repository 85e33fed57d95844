/* SPDX-License-Identifier: MIT
 *
 * A chart is 600 units wide and as high as it needs: title, plot with axes, legend. It scales with
 * its page, so text is large enough to be read on a phone. Colours are classes c0..c7 that the
 * style gives values for light and for dark; dash and marker follow the series' number, eight of
 * each.
 */
#include "cli/svg.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "cli/table.h"

enum {
	WIDTH = 600,
	LEFT = 74,
	RIGHT = 38,
	TOP = 44,
	PLOT_HEIGHT = 300,
	AXIS_HEIGHT = 58, /* numbers and title of the x axis */
	LEGEND_LINE = 24,
	LEGEND_COLUMNS = 3,
	ROW_HEIGHT = 24,
	LABEL_WIDTH = 226,
	LABEL_MAX = 30, /* characters of a label that fit there */
	HEAT_LEFT = 118,
	HEAT_ROW = 34,
	HEAT_LABEL_WIDTH = 76, /* of a number on the x axis */
	TEXT_MAX = 80,
	SERIES_KINDS = 8,
};

struct scale {
	double from, to;  /* of the data */
	double low, high; /* on paper */
	double step;
};

static double at(const struct scale *s, double value)
{
	return s->low + (value - s->from) / (s->to - s->from) * (s->high - s->low);
}

/* ---- text ---- */

void xml_text(FILE *out, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = utf8_length(s);

		if (!n || (*s < 0x20 && *s != '\t' && *s != '\n')) {
			fputs("\xEF\xBF\xBD", out);
			s++;
			continue;
		}
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '"')
			fputs("&quot;", out);
		else
			fwrite(s, 1, n, out);
		s += n;
	}
}

static void put_text(FILE *out, double x, double y, const char *class, const char *text)
{
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	xml_text(out, text);
	fputs("</text>\n", out);
}

/* The last characters of a long label matter least for a case, so the end goes. */
static void put_label(FILE *out, double x, double y, const char *class, const char *text,
		      size_t max)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = 0, used = 0, step;
	char cut[4 * TEXT_MAX + 8];

	while (s[used] && n < MIN(max, (size_t)TEXT_MAX)) {
		step = utf8_length(s + used);
		used += step ? step : 1;
		n++;
	}
	if (!s[used]) {
		put_text(out, x, y, class, text);
		return;
	}
	memcpy(cut, text, used);
	memcpy(cut + used, "\xE2\x80\xA6", 4);
	put_text(out, x, y, class, cut);
}

static void put_number(char *text, size_t size, double value)
{
	char count[32];

	if (fabs(value) >= 10000 && fabs(value) < 1e15)
		snprintf(text, size, "%s%s", value < 0 ? "-" : "",
			 count_text((uint64_t)fabs(round(value)), count));
	else
		snprintf(text, size, "%.6g", value);
}

/* ---- scales ---- */

/* 1, 2 or 5 times a power of ten, such that about `wanted` steps fit. */
static double nice_step(double span, double wanted)
{
	double raw = span / wanted, power = pow(10, floor(log10(raw)));
	double unit = raw / power;

	return power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10);
}

static void scale_set(struct scale *s, double from, double to, double wanted)
{
	if (!(to > from))
		to = from + (from > 0 ? from : 1);
	s->step = nice_step(to - from, wanted);
	s->from = floor(from / s->step + 1e-9) * s->step;
	s->to = ceil(to / s->step - 1e-9) * s->step;
}

static void find_range(const struct svg_series *series, size_t nr, bool of_x, double *low,
		       double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (size_t i = 0; i < nr; i++) {
		for (size_t j = 0; j < series[i].n; j++) {
			double value = of_x ? series[i].x[j] : series[i].y[j];

			if (!isfinite(value))
				continue;
			*low = fmin(*low, value);
			*high = fmax(*high, value);
		}
	}
	if (!isfinite(*low))
		*low = *high = 0;
}

/* ---- axes ---- */

static void x_axis(FILE *out, const struct scale *x, double top, double bottom, const char *title)
{
	long steps = lround((x->to - x->from) / x->step);

	for (long i = 0; i <= steps; i++) {
		double value = x->from + (double)i * x->step, px = at(x, value);
		char text[40];

		if (fabs(value) < x->step * 1e-6)
			value = 0;
		put_number(text, sizeof(text), value);
		fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", px, top, bottom);
		put_text(out, px, bottom + 18, "tick mid", text);
	}
	put_text(out, (x->low + x->high) / 2, bottom + 42, "axis mid", title);
}

static void y_axis(FILE *out, const struct scale *y, double left, double right, const char *title)
{
	long steps = lround((y->to - y->from) / y->step);
	double middle = (y->low + y->high) / 2;

	for (long i = 0; i <= steps; i++) {
		double value = y->from + (double)i * y->step, py = at(y, value);
		char text[40];

		put_number(text, sizeof(text), value);
		fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", left, py, right);
		put_text(out, left - 7, py + 4, "tick end", text);
	}
	fprintf(out, "<text class=\"axis mid\" transform=\"translate(18 %.1f) rotate(-90)\">",
		middle);
	xml_text(out, title);
	fputs("</text>\n", out);
}

/* ---- series ---- */

static void marker(FILE *out, size_t kind, double x, double y)
{
	static const char *const shapes[SERIES_KINDS] = {
		"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", /* disc */
		"m-4-4h8v8h-8z",                      /* square */
		"m0-5l5 9h-10z",                      /* triangle */
		"m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",  /* diamond */
		"m0 5l5-9h-10z",                      /* triangle, point down */
		"m-4-4l8 8m0-8l-8 8",                 /* cross */
		"m-5 0h10m-5-5v10",                   /* plus */
		"m-2-5h4v10h-4z",                     /* bar */
	};

	fprintf(out, "<path class=\"mark c%zu\" d=\"M%.1f %.1f%s\"/>\n", kind % SERIES_KINDS, x, y,
		shapes[kind % SERIES_KINDS]);
}

static const char *dash(size_t kind)
{
	static const char *const dashes[SERIES_KINDS] = {"none", "8 4",     "2 4", "10 4 2 4",
							 "14 5", "5 3 1 3", "4 4", "16 4 4 4"};

	/* The ninth series has the marker of the first, but not its dash. */
	return dashes[(kind + kind / SERIES_KINDS) % SERIES_KINDS];
}

static void line_start(FILE *out, size_t kind)
{
	fprintf(out, "<path class=\"line c%zu\" stroke-dasharray=\"%s\" d=\"", kind % SERIES_KINDS,
		dash(kind));
}

static void draw_series(FILE *out, const struct svg_series *s, size_t kind, const struct scale *x,
			const struct scale *y)
{
	/* A marker at every point of a long line is a smear. */
	size_t every = s->n / 12 + 1;
	bool pen = false;

	line_start(out, kind);
	for (size_t i = 0; i < s->n; i++) {
		if (!isfinite(s->y[i])) {
			pen = false;
			continue;
		}
		fprintf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at(x, s->x[i]), at(y, s->y[i]));
		pen = true;
	}
	fputs("\"/>\n", out);
	for (size_t i = 0; i < s->n; i++) {
		/* Lines that run together have their markers at different places. */
		if (isfinite(s->y[i]) && (s->n <= 12 || i % every == kind % every))
			marker(out, kind, at(x, s->x[i]), at(y, s->y[i]));
	}
}

static double legend_height(size_t nr)
{
	return (double)((nr + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS * LEGEND_LINE);
}

static void legend(FILE *out, const struct svg_series *series, size_t nr, double top, bool lines)
{
	const double column = (WIDTH - LEFT - RIGHT) / (double)LEGEND_COLUMNS;

	for (size_t i = 0; i < nr; i++) {
		double x = LEFT + column * (double)(i % LEGEND_COLUMNS);
		double y = top + (double)(i / LEGEND_COLUMNS * LEGEND_LINE) + 12;

		if (lines) {
			line_start(out, i);
			fprintf(out, "M%.1f %.1fh40\"/>\n", x, y);
		}
		marker(out, i, x + 20, y);
		put_label(out, x + 48, y + 5, "name", series[i].name, nr == 1 ? TEXT_MAX : 16);
	}
}

/* ---- the whole ---- */

void svg_style(FILE *out)
{
	static const char *const light[] = {"#0b5cad", "#b3400b", "#1b7a3d", "#7a2d91",
					    "#8a6d00", "#00727a", "#b01657", "#555555"};
	static const char *const dark[] = {"#6cb4ff", "#ff9a5c", "#6fd08c", "#d59bea",
					   "#e6c84a", "#5cd3dc", "#ff86b5", "#bbbbbb"};

	fputs(".chart{font-family:system-ui,sans-serif;font-size:14px;max-width:100%;height:auto}\n"
	      ".chart text{fill:#222}.chart .title{font-size:17px;font-weight:600}\n"
	      ".chart .axis{font-size:14px}.chart .tick{font-size:13px}\n"
	      ".chart .mid{text-anchor:middle}.chart .end{text-anchor:end}\n"
	      ".chart .paper{fill:#fff}.chart .grid{stroke:#ccc;stroke-width:1;fill:none}\n"
	      ".chart .line{fill:none;stroke-width:2}.chart .mark{stroke-width:2}\n"
	      ".chart .heat{fill:#0b5cad;stroke:#ccc;stroke-width:1}\n"
	      ".chart .digit{font-size:13px;text-anchor:middle}.chart .over{fill:#fff}\n",
	      out);
	for (size_t i = 0; i < SERIES_KINDS; i++)
		fprintf(out, ".c%zu{stroke:%s;fill:%s}", i, light[i], light[i]);
	fputs("\n@media screen and (prefers-color-scheme:dark){.chart text{fill:#e6e6e6}.chart "
	      ".paper{fill:#16181c}"
	      ".chart .grid{stroke:#444}.chart .heat{fill:#6cb4ff;stroke:#444}.chart "
	      ".over{fill:#000}\n",
	      out);
	for (size_t i = 0; i < SERIES_KINDS; i++)
		fprintf(out, ".c%zu{stroke:%s;fill:%s}", i, dark[i], dark[i]);
	fputs("}\n.chart .line{fill:none}\n", out);
}

static void begin(FILE *out, double height, const char *title, bool alone)
{
	fprintf(out,
		"<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
		"width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>",
		WIDTH, height, WIDTH, height);
	xml_text(out, title);
	fputs("</title>\n", out);
	if (alone) {
		fputs("<style>\n", out);
		svg_style(out);
		fputs("</style>\n", out);
	}
	fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n", WIDTH, height);
}

static void draw_chart(FILE *out, const struct svg_chart *chart)
{
	const double bottom = TOP + PLOT_HEIGHT;
	struct scale x = {.low = LEFT, .high = WIDTH - RIGHT}, y = {.low = bottom, .high = TOP};
	double low, high;

	find_range(chart->series, chart->nr, true, &low, &high);
	scale_set(&x, low, high, 5);
	find_range(chart->series, chart->nr, false, &low, &high);
	scale_set(&y, 0, chart->y_max > 0 ? chart->y_max : high, 6);
	put_label(out, LEFT, 26, "title", chart->title, 54);
	x_axis(out, &x, TOP, bottom, chart->x_title);
	y_axis(out, &y, LEFT, WIDTH - RIGHT, chart->y_title);
	for (size_t i = 0; i < chart->nr; i++)
		draw_series(out, &chart->series[i], i, &x, &y);
	legend(out, chart->series, chart->nr, bottom + AXIS_HEIGHT, true);
}

static double chart_height(const struct svg_chart *chart)
{
	return TOP + PLOT_HEIGHT + AXIS_HEIGHT + legend_height(chart->nr) + 8;
}

void svg_charts(FILE *out, const struct svg_chart *charts, size_t nr, bool alone)
{
	double height = 0;

	for (size_t i = 0; i < nr; i++)
		height += chart_height(&charts[i]);
	begin(out, height, nr ? charts[0].title : "", alone);
	height = 0;
	for (size_t i = 0; i < nr; i++) {
		fprintf(out, "<g transform=\"translate(0 %.0f)\">\n", height);
		draw_chart(out, &charts[i]);
		fputs("</g>\n", out);
		height += chart_height(&charts[i]);
	}
	fputs("</svg>\n", out);
}

void svg_dots(FILE *out, const struct svg_dots *dots, bool alone)
{
	const double bottom = TOP + (double)dots->rows * ROW_HEIGHT + 8;
	const double apart = dots->nr > 1 ? MIN(8.0, 12.0 / (double)(dots->nr - 1)) : 0;
	const double above = apart * (double)(dots->nr - (dots->nr > 0)) / 2;
	struct scale x = {.low = LABEL_WIDTH, .high = WIDTH - RIGHT};
	double low, high;

	find_range(dots->series, dots->nr, false, &low, &high);
	scale_set(&x, fmin(low, 0), high, 3);
	begin(out, bottom + AXIS_HEIGHT + legend_height(dots->nr) + 8, dots->title, alone);
	put_label(out, 12, 18, "title", dots->title, 58);
	put_text(out, LABEL_WIDTH - 8, TOP - 4, "axis end", dots->y_title);
	x_axis(out, &x, TOP, bottom, dots->x_title);
	for (size_t row = 0; row < dots->rows; row++) {
		double y = TOP + (double)row * ROW_HEIGHT + ROW_HEIGHT / 2.0 + 4;

		fprintf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x.low, y, x.high);
		put_label(out, LABEL_WIDTH - 8, y + 5, "tick end", dots->labels[row], LABEL_MAX);
		for (size_t i = 0; i < dots->nr; i++) {
			/* A little apart, so that equal values do not hide each other. */
			if (isfinite(dots->series[i].y[row]))
				marker(out, i, at(&x, dots->series[i].y[row]),
				       y + apart * (double)i - above);
		}
	}
	legend(out, dots->series, dots->nr, bottom + AXIS_HEIGHT, false);
	fputs("</svg>\n", out);
}

static void heat_cell(FILE *out, double x, double y, double width, double value)
{
	char digit[2] = {0};

	fprintf(out,
		"<rect class=\"heat\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
		"fill-opacity=\"%.2f\"/>\n",
		x, y, width, HEAT_ROW, isnan(value) ? 0 : MIN(MAX(value, 0.0), 1.0));
	if (isnan(value))
		return;
	digit[0] = value >= 0.95 ? 'X' : (char)('0' + lround(MAX(value, 0.0) * 10));
	put_text(out, x + width / 2, y + HEAT_ROW / 2.0 + 5, value > 0.5 ? "digit over" : "digit",
		 digit);
}

void svg_heat(FILE *out, const struct svg_heat *heat, bool alone)
{
	const double width = (WIDTH - HEAT_LEFT - RIGHT) / (double)MAX(heat->columns, (size_t)1),
		     bottom = TOP + (double)heat->rows * HEAT_ROW,
		     middle = HEAT_LEFT + (WIDTH - HEAT_LEFT - RIGHT) / 2.0;
	const size_t every = (size_t)ceil(HEAT_LABEL_WIDTH / width);

	begin(out, bottom + AXIS_HEIGHT, heat->title, alone);
	put_label(out, 12, 18, "title", heat->title, 58);
	put_text(out, HEAT_LEFT - 8, TOP - 6, "axis end", heat->y_title);
	for (size_t row = 0; row < heat->rows; row++) {
		double y = TOP + (double)row * HEAT_ROW;

		put_text(out, HEAT_LEFT - 8, y + HEAT_ROW / 2.0 + 5, "tick end",
			 heat->row_labels[row]);
		for (size_t column = 0; column < heat->columns; column++)
			heat_cell(out, HEAT_LEFT + (double)column * width, y, width,
				  heat->value[row * heat->columns + column]);
	}
	/* The last column is named, and as many before it as fit. */
	for (size_t column = 0; column < heat->columns; column++) {
		if ((heat->columns - 1 - column) % every == 0)
			put_text(out, HEAT_LEFT + ((double)column + 0.5) * width, bottom + 18,
				 "tick mid", heat->column_labels[column]);
	}
	put_text(out, middle, bottom + 42, "axis mid", heat->x_title);
	fputs("</svg>\n", out);
}
