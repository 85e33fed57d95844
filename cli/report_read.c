/* SPDX-License-Identifier: MIT
 *
 * Json of replay (a list of rows with a miss ratio), bench (a list of rows with a suite) and mrc
 * (an object that says so) into plain arrays. Every field is checked here, so that the page can
 * trust what it draws; the texts stay in the parsed document.
 */
#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_JSONC
#include <json-c/json.h>

enum { FILE_MAX = 256 << 20 };

/* Where we are, for messages. */
struct place {
	const char *path, *list;
	size_t row;
	struct err *err;
};

static int fail(const struct place *place, const char *key, const char *what)
{
	return err_set(place->err, -EINVAL, "%s: %s %zu: %s '%s'", place->path, place->list,
		       place->row + 1, what, key);
}

static int get_text(const struct place *place, struct json_object *row, const char *key,
		    const char **out)
{
	struct json_object *value;

	if (!json_object_object_get_ex(row, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return fail(place, key, "no text");
	*out = json_object_get_string(value);
	return 0;
}

/* A number of at least `least`; with `empty` also null or nothing, which is NaN. */
static int get_number(const struct place *place, struct json_object *row, const char *key,
		      double least, bool empty, double *out)
{
	struct json_object *value = NULL;
	enum json_type type;

	json_object_object_get_ex(row, key, &value);
	type = json_object_get_type(value);
	*out = NAN;
	if (type == json_type_null && empty)
		return 0;
	if (type != json_type_int && type != json_type_double)
		return fail(place, key, "no number");
	*out = json_object_get_double(value);
	return isfinite(*out) && *out >= least ? 0 : fail(place, key, "out of range:");
}

static int get_point(const struct place *place, struct json_object *row, void *out)
{
	struct report_point *point = out;
	int r = get_text(place, row, "trace", &point->trace);

	if (!r)
		r = get_text(place, row, "policy", &point->policy);
	if (!r)
		r = get_number(place, row, "pages", 1, false, &point->pages);
	return r ? r : get_number(place, row, "miss_ratio", 0, false, &point->miss_ratio);
}

static int get_window(const struct place *place, struct json_object *row, void *out)
{
	struct report_window *window = out;
	double from, accesses;
	int r = get_text(place, row, "trace", &window->trace);

	if (!r)
		r = get_number(place, row, "from", 0, false, &from);
	if (!r)
		r = get_number(place, row, "accesses", 1, false, &accesses);
	if (!r)
		r = get_number(place, row, "unique_pages", 1, false, &window->pages);
	if (!r)
		window->end = from + accesses;
	return r;
}

static int get_answer(const struct place *place, struct json_object *row, void *out)
{
	struct report_answer *answer = out;
	struct json_object *value = NULL;
	int r = get_text(place, row, "trace", &answer->trace);

	if (!r)
		r = get_text(place, row, "policy", &answer->policy);
	if (!r)
		r = get_number(place, row, "target", 0, false, &answer->target);
	if (!r)
		r = get_number(place, row, "pages", 1, true, &answer->pages);
	json_object_object_get_ex(row, "at_most", &value);
	answer->at_most = json_object_get_boolean(value);
	return r;
}

static int get_row(const struct place *place, struct json_object *row, void *out)
{
	struct report_row *bench = out;
	int r = get_text(place, row, "suite", &bench->suite);

	if (!r)
		r = get_text(place, row, "case", &bench->case_name);
	if (!r)
		r = get_text(place, row, "metric", &bench->metric);
	if (!r)
		r = get_text(place, row, "policy", &bench->policy);
	if (!r)
		r = get_number(place, row, "published", -INFINITY, true, &bench->published);
	if (!r)
		r = get_number(place, row, "measured", -INFINITY, false, &bench->measured);
	return r ? r : get_number(place, row, "deviation", -INFINITY, true, &bench->deviation);
}

static int get_look(const struct place *place, struct json_object *row, void *out)
{
	struct report_look *look = out;
	struct json_object *pages = NULL;
	int r = get_number(place, row, "access", 0, false, &look->access);

	if (!r)
		r = get_number(place, row, "min_seq", 0, true, &look->min_seq);
	if (r)
		return r;
	json_object_object_get_ex(row, "pages", &pages);
	if (!json_object_is_type(pages, json_type_array) || !json_object_array_length(pages) ||
	    json_object_array_length(pages) > REPORT_AGES)
		return fail(place, "pages", "no list of at most 4");
	look->nr = json_object_array_length(pages);
	for (size_t i = 0; i < look->nr; i++) {
		struct json_object *value = json_object_array_get_idx(pages, i);

		look->pages[i] = json_object_get_double(value);
		if (!json_object_is_type(value, json_type_int) || look->pages[i] < 0)
			return fail(place, "pages", "no number:");
	}
	return 0;
}

typedef int (*getter)(const struct place *place, struct json_object *row, void *out);

static int get_list(struct place *place, struct json_object *list, const char *name, getter get,
		    size_t size, void **out, size_t *nr)
{
	size_t n;
	char *items;

	place->list = name;
	place->row = 0;
	if (!json_object_is_type(list, json_type_array))
		return err_set(place->err, -EINVAL, "%s: no list of %ss", place->path, name);
	n = json_object_array_length(list);
	*out = items = calloc(n + 1, size);
	if (!items)
		return err_set(place->err, -ENOMEM, "%s: out of memory", place->path);
	for (; place->row < n; place->row++) {
		struct json_object *row = json_object_array_get_idx(list, place->row);
		int r;

		if (!json_object_is_type(row, json_type_object))
			return fail(place, "", "not an object");
		r = get(place, row, items + place->row * size);
		if (r)
			return r;
	}
	*nr = n;
	return 0;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return value;
}

/* The rows of replay that looked at ages. */
static int read_ages(struct place *place, struct json_object *root, struct report_input *input)
{
	size_t n = json_object_array_length(root);
	int r = 0;

	input->ages = calloc(n + 1, sizeof(*input->ages));
	if (!input->ages)
		return err_set(place->err, -ENOMEM, "%s: out of memory", place->path);
	for (size_t i = 0; i < n && !r; i++) {
		struct json_object *looks = member(json_object_array_get_idx(root, i), "ages");
		struct report_ages *ages = &input->ages[input->nr_ages];

		if (!looks)
			continue;
		ages->trace = input->points[i].trace;
		ages->policy = input->points[i].policy;
		ages->room = input->points[i].pages;
		input->nr_ages++;
		r = get_list(place, looks, "look", get_look, sizeof(*ages->looks),
			     (void **)&ages->looks, &ages->nr);
	}
	return r;
}

static int read_mrc(struct place *place, struct json_object *root, struct report_input *input)
{
	int r = get_list(place, member(root, "curves"), "curve point", get_point,
			 sizeof(*input->points), (void **)&input->points, &input->nr_points);

	if (!r)
		r = get_list(place, member(root, "working_set"), "window", get_window,
			     sizeof(*input->windows), (void **)&input->windows, &input->nr_windows);
	if (!r)
		r = get_list(place, member(root, "answers"), "answer", get_answer,
			     sizeof(*input->answers), (void **)&input->answers, &input->nr_answers);
	if (!r)
		r = get_number(place, root, "rate", 0, true, &input->rate);
	return r;
}

static int read_root(struct place *place, struct json_object *root, struct report_input *input)
{
	struct json_object *first = root, *kind = member(root, "foliage");

	input->rate = 1;
	if (json_object_is_type(root, json_type_array))
		first = json_object_array_get_idx(root, 0);
	if (json_object_is_type(first, json_type_object) &&
	    json_object_is_type(member(first, "command"), json_type_string))
		input->command = json_object_get_string(member(first, "command"));
	if (kind && !strcmp(json_object_get_string(kind), "mrc"))
		return read_mrc(place, root, input);
	if (first != root && member(first, "suite"))
		return get_list(place, root, "row", get_row, sizeof(*input->rows),
				(void **)&input->rows, &input->nr_rows);
	if (first != root && member(first, "miss_ratio")) {
		int r = get_list(place, root, "row", get_point, sizeof(*input->points),
				 (void **)&input->points, &input->nr_points);

		return r ? r : read_ages(place, root, input);
	}
	return err_set(place->err, -EINVAL, "%s: not the json of replay, mrc or bench",
		       place->path);
}

/* The whole file, zero-terminated. */
static int slurp(const char *path, char **text, size_t *size, struct err *err)
{
	FILE *in = fopen(path, "r");
	FILE *out = in ? open_memstream(text, size) : NULL;
	char block[65536];
	size_t n, total = 0;
	int code = 0;

	if (!out) {
		code = errno;
		if (in)
			fclose(in);
		return err_set(err, -code, "%s: %s", path, strerror(code));
	}
	while (total <= FILE_MAX && (n = fread(block, 1, sizeof(block), in)) > 0) {
		fwrite(block, 1, n, out);
		total += n;
	}
	if (ferror(in))
		code = errno ? errno : EIO;
	else if (total > FILE_MAX)
		code = EFBIG;
	fclose(in);
	if (fclose(out) && !code)
		code = ENOMEM;
	return code ? err_set(err, -code, "%s: %s", path, strerror(code)) : 0;
}

static size_t line_of(const char *text, size_t place)
{
	size_t line = 1;

	for (size_t i = 0; i < place; i++)
		line += text[i] == '\n';
	return line;
}

static int parse(const char *path, const char *text, size_t size, struct json_object **root,
		 struct err *err)
{
	struct json_tokener *tokener = json_tokener_new();
	enum json_tokener_error error;
	size_t end;

	if (!tokener)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	/* With the terminating zero, so that a text that stops short is an error and not a wish for
	 * more. */
	*root = json_tokener_parse_ex(tokener, text, (int)size + 1);
	error = json_tokener_get_error(tokener);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	if (*root && error == json_tokener_success && end >= size)
		return 0;
	json_object_put(*root);
	*root = NULL;
	return err_set(err, -EILSEQ, "%s: line %zu: not json: %s", path,
		       line_of(text, end < size ? end : size),
		       error == json_tokener_success ? "the text is no value, or goes on after it"
		       : error == json_tokener_continue ? "the text ends too early"
							: json_tokener_error_desc(error));
}

int report_read(const char *path, struct report_input *input, struct err *err)
{
	struct place place = {.path = path, .list = "value", .err = err};
	struct json_object *root = NULL;
	char *text = NULL;
	size_t size = 0;
	int r = slurp(path, &text, &size, err);

	memset(input, 0, sizeof(*input));
	input->path = path;
	if (!r)
		r = parse(path, text, size, &root, err);
	free(text);
	input->json = root;
	if (!r)
		r = read_root(&place, root, input);
	if (r)
		report_input_free(input);
	return r;
}

void report_input_free(struct report_input *input)
{
	json_object_put(input->json);
	free(input->points);
	free(input->windows);
	free(input->answers);
	free(input->rows);
	for (size_t i = 0; i < input->nr_ages; i++)
		free(input->ages[i].looks);
	free(input->ages);
	memset(input, 0, sizeof(*input));
}
#else
int report_read(const char *path, struct report_input *input, struct err *err)
{
	memset(input, 0, sizeof(*input));
	return err_set(err, -ENOSYS, "%s: report is not built in (it needs json-c)", path);
}

void report_input_free(struct report_input *input)
{
	(void)input;
}
#endif
