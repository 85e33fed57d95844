/* SPDX-License-Identifier: MIT
 *
 * Options are parsed by hand rather than by getopt_long, because getopt writes its own messages,
 * keeps its state in globals and cannot suggest the nearest option.
 *
 * Sizes are parsed in two steps: the text before any trace is read, so that a mistake costs no
 * time, and the percentages once the trace's unique pages are known.
 */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/nearest.h"
#include "foliage/policy.h"

enum { PAGE_BYTES = 4096, RANGE_MAX = 10000 };

/* ---- numbers ---- */

enum { JOBS_MAX = 1024 };

int parse_count(const char *text, const char *what, uint64_t *value, struct err *err)
{
	char *end;

	if (*text < '0' || *text > '9')
		return err_set(err, -EINVAL, "%s: '%s' is not a count", what, text);
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*end)
		return err_set(err, -EINVAL, "%s: '%s' is not a count", what, text);
	if (errno)
		return err_set(err, -ERANGE, "%s: '%s' is too large", what, text);
	return 0;
}

int parse_real(const char *text, const char *what, double *value, struct err *err)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value))
		return err_set(err, -EINVAL, "%s: '%s' is not a number", what, text);
	return 0;
}

int parse_choice(const char *word, const char *what, const char *const *names, struct err *err)
{
	struct nearest nearest;
	char list[256] = "";
	size_t len = 0;

	nearest_start(&nearest, word);
	for (int i = 0; names[i]; i++) {
		size_t n = strlen(names[i]);

		if (!strcmp(word, names[i]))
			return i;
		nearest_try(&nearest, names[i]);
		if (len + n + 3 < sizeof(list)) {
			if (len) {
				memcpy(list + len, ", ", 2);
				len += 2;
			}
			memcpy(list + len, names[i], n + 1);
			len += n;
		}
	}
	if (nearest.best)
		return err_set(err, -EINVAL, "%s: unknown '%s', did you mean '%s'?", what, word,
			       nearest.best);
	return err_set(err, -EINVAL, "%s: unknown '%s' (one of %s)", what, word, list);
}

/* ---- options ---- */

int parse_format(const char *text, enum table_format *format, struct err *err)
{
	int r = parse_choice(text, "--format", table_formats, err);

	if (r < 0)
		return r;
	*format = (enum table_format)r;
	return 0;
}

int check_jobs(uint64_t jobs, struct err *err)
{
	return jobs > JOBS_MAX ? err_set(err, -EINVAL, "--jobs: at most %d", JOBS_MAX) : 0;
}

int check_traces(const char *command, int nr, char **traces, struct err *err)
{
	int stdins = 0;

	if (!nr)
		return err_set(err, -EINVAL, "%s: no trace (foliage help %s)", command, command);
	for (int i = 0; i < nr; i++)
		stdins += !strcmp(traces[i], "-");
	return stdins > 1
		       ? err_set(err, -EINVAL, "%s: standard input can be read only once", command)
		       : 0;
}

static const struct option_spec *spec_by_name(const struct option_spec *specs, size_t nr,
					      const char *name, size_t len)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strncmp(specs[i].name, name, len) && !specs[i].name[len])
			return &specs[i];
	}
	return NULL;
}

static const struct option_spec *spec_by_letter(const struct option_spec *specs, size_t nr,
						char letter)
{
	for (size_t i = 0; i < nr; i++) {
		if (specs[i].letter && specs[i].letter == letter)
			return &specs[i];
	}
	return NULL;
}

static int unknown_option(const struct option_spec *specs, size_t nr, const char *arg, size_t len,
			  struct err *err)
{
	char name[64];
	struct nearest nearest;

	if (len >= sizeof(name) || arg[1] != '-')
		return err_set(err, -EINVAL, "unknown option '%.*s'", (int)MIN(len, 80u), arg);
	memcpy(name, arg, len);
	name[len] = 0;
	nearest_start(&nearest, name + 2);
	for (size_t i = 0; i < nr; i++)
		nearest_try(&nearest, specs[i].name);
	if (nearest.best)
		return err_set(err, -EINVAL, "unknown option '%s', did you mean '--%s'?", name,
			       nearest.best);
	return err_set(err, -EINVAL, "unknown option '%s'", name);
}

static int store(const struct option_spec *spec, const char *text, struct err *err)
{
	char what[64] = "--";

	strncat(what, spec->name, sizeof(what) - 3);
	switch (spec->kind) {
	case OPTION_FLAG:
		*(bool *)spec->value = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)spec->value = text;
		return 0;
	case OPTION_COUNT:
		return parse_count(text, what, spec->value, err);
	case OPTION_REAL:
		return parse_real(text, what, spec->value, err);
	}
	return -EINVAL;
}

/* One option at argv[i]; returns how many arguments it took. */
static int parse_option(int argc, char **argv, int i, const struct option_spec *specs, size_t nr,
			struct err *err)
{
	const char *arg = argv[i], *value = NULL;
	const struct option_spec *spec;
	size_t len;
	int r;

	if (arg[1] == '-') {
		len = strcspn(arg, "=");
		spec = spec_by_name(specs, nr, arg + 2, len - 2);
		if (arg[len])
			value = arg + len + 1;
	} else {
		len = 2;
		spec = spec_by_letter(specs, nr, arg[1]);
		if (arg[2])
			value = arg + 2;
	}
	if (!spec)
		return unknown_option(specs, nr, arg, len, err);
	if (spec->kind == OPTION_FLAG) {
		if (value)
			return err_set(err, -EINVAL, "--%s takes no value", spec->name);
		return store(spec, NULL, err) ? -EINVAL : 1;
	}
	if (value)
		return store(spec, value, err) ? -EINVAL : 1;
	if (i + 1 >= argc)
		return err_set(err, -EINVAL, "--%s needs a value", spec->name);
	r = store(spec, argv[i + 1], err);
	return r ? -EINVAL : 2;
}

int options_parse(int argc, char **argv, const struct option_spec *specs, size_t nr_specs,
		  struct err *err)
{
	int operands = 0, i = 1;

	while (i < argc) {
		int taken;

		if (!strcmp(argv[i], "--")) {
			for (i++; i < argc; i++)
				argv[++operands] = argv[i];
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			argv[++operands] = argv[i++];
			continue;
		}
		taken = parse_option(argc, argv, i, specs, nr_specs, err);
		if (taken < 0)
			return taken;
		i += taken;
	}
	return operands;
}

/* ---- sizes ---- */

static int append(struct size_list *list, double value, bool percent, struct err *err)
{
	struct size_item *items = realloc(list->items, (list->nr + 1) * sizeof(*items));

	if (!items)
		return err_set(err, -ENOMEM, "out of memory");
	items[list->nr++] = (struct size_item){.value = value, .percent = percent};
	list->items = items;
	return 0;
}

void sizes_free(struct size_list *list)
{
	free(list->items);
	*list = (struct size_list){0};
}

static int parse_pages(const char *text, struct size_item *item, struct err *err)
{
	uint64_t pages;
	int r = parse_count(text, "--pages", &pages, err);

	*item = (struct size_item){.value = (double)pages};
	return r;
}

/* The factor of a memory unit in bytes, 0 when the text is none: K, KB, KiB and so on, all powers
 * of 1024. */
static double unit_bytes(const char *unit)
{
	static const char letters[] = "KMGT";
	double bytes = 1024;

	for (const char *l = letters; *l; l++, bytes *= 1024) {
		if (strncasecmp(unit, l, 1) == 0) {
			const char *rest = unit + 1;

			return !*rest || !strcasecmp(rest, "B") || !strcasecmp(rest, "iB") ? bytes
											   : 0;
		}
	}
	return 0;
}

int parse_bytes(const char *text, const char *what, uint64_t *bytes, struct err *err)
{
	char *end;
	double value = strtod(text, &end), unit = *end ? unit_bytes(end) : 1;

	if (*text < '0' || *text > '9' || !isfinite(value) || unit <= 0)
		return err_set(err, -EINVAL, "%s: '%s' is not a size, as in 64M or 4096", what,
			       text);
	if (value * unit >= 0x1p63)
		return err_set(err, -ERANGE, "%s: '%s' is too large", what, text);
	*bytes = (uint64_t)(value * unit);
	return 0;
}

static int parse_memory(const char *text, struct size_item *item, struct err *err)
{
	char *end;
	double value = strtod(text, &end), bytes;

	if (end == text || !isfinite(value) || value < 0 || *text < '0' || *text > '9')
		return err_set(err, -EINVAL, "--memory: '%s' is not a size", text);
	if (!strcmp(end, "%")) {
		*item = (struct size_item){.value = value, .percent = true};
		return 0;
	}
	bytes = unit_bytes(end);
	if (bytes <= 0)
		return err_set(err, -EINVAL,
			       "--memory: '%s' needs a unit, K, M, G, T or %%, as in 64M or 10%%",
			       text);
	*item = (struct size_item){.value = value * bytes / PAGE_BYTES};
	return 0;
}

typedef int (*size_parser)(const char *text, struct size_item *item, struct err *err);

static int parse_range(struct size_list *list, char *text, char *dots, size_parser parse,
		       const char *option, struct err *err)
{
	struct size_item from, to;
	char *slash = strchr(dots, '/');
	uint64_t steps;
	int r;

	if (!slash)
		return err_set(err, -EINVAL,
			       "%s: the range '%s' needs a number of sizes, as in %s/10", option,
			       text, text);
	*slash = 0;
	*dots = 0;
	r = parse(text, &from, err);
	if (!r)
		r = parse(dots + 2, &to, err);
	if (!r)
		r = parse_count(slash + 1, option, &steps, err);
	if (r)
		return r;
	if (from.percent != to.percent)
		return err_set(err, -EINVAL, "%s: the range from '%s' to '%s' mixes units", option,
			       text, dots + 2);
	if (steps < 2 || steps > RANGE_MAX)
		return err_set(err, -EINVAL, "%s: a range has 2 to %d sizes, not %s", option,
			       RANGE_MAX, slash + 1);
	for (uint64_t i = 0; i < steps && !r; i++) {
		double t = (double)i / (double)(steps - 1);

		r = append(list, from.value + (to.value - from.value) * t, from.percent, err);
	}
	return r;
}

static int parse_sizes(struct size_list *list, const char *text, size_parser parse,
		       const char *option, struct err *err)
{
	char *copy = strdup(text), *rest = copy, *word;
	int r = 0;

	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	while (!r && (word = strsep(&rest, ","))) {
		char *dots = strstr(word, "..");
		struct size_item item;

		if (dots) {
			r = parse_range(list, word, dots, parse, option, err);
			continue;
		}
		r = parse(word, &item, err);
		if (!r)
			r = append(list, item.value, item.percent, err);
	}
	free(copy);
	return r;
}

int sizes_parse_pages(struct size_list *list, const char *text, struct err *err)
{
	return parse_sizes(list, text, parse_pages, "--pages", err);
}

int sizes_parse_memory(struct size_list *list, const char *text, struct err *err)
{
	return parse_sizes(list, text, parse_memory, "--memory", err);
}

int sizes_parse(struct size_list *list, const char *pages, const char *memory, struct err *err)
{
	int r = pages ? sizes_parse_pages(list, pages, err) : 0;

	return r || !memory ? r : sizes_parse_memory(list, memory, err);
}

static int resolve_item(const struct size_item *item, uint64_t unique, uint32_t *pages,
			struct err *err)
{
	/* A part of a page from the rounding of the percentage itself must not cost a whole page.
	 */
	double exact = item->percent ? item->value * (double)unique / 100 : item->value;
	double size = floor(exact + 1e-6);

	if (size > (double)UINT32_MAX - 1)
		return err_set(err, -EINVAL, "a room of %.10g pages is too large", size);
	if (size >= FOLIAGE_ROOM_MIN) {
		*pages = (uint32_t)size;
		return 0;
	}
	if (item->percent)
		return err_set(
			err, -EINVAL,
			"%g%% of %llu unique pages is a room of %.0f: the smallest is %d pages",
			item->value, (unsigned long long)unique, size, FOLIAGE_ROOM_MIN);
	return err_set(err, -EINVAL, "a room of %.0f pages: the smallest is %d pages", size,
		       FOLIAGE_ROOM_MIN);
}

int sizes_resolve(const struct size_list *list, uint64_t unique, uint32_t **pages, size_t *nr,
		  struct err *err)
{
	uint32_t *out = calloc(list->nr ? list->nr : 1, sizeof(*out));
	size_t n = 0;

	if (!out)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < list->nr; i++) {
		uint32_t size = 0;
		size_t j = 0;
		int r = resolve_item(&list->items[i], unique, &size, err);

		if (r) {
			free(out);
			return r;
		}
		while (j < n && out[j] != size)
			j++;
		if (j == n)
			out[n++] = size;
	}
	*pages = out;
	*nr = n;
	return 0;
}
