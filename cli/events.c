/* SPDX-License-Identifier: MIT
 *
 * The names of events and rules in a file of events are part of its format: a new one may be added,
 * none renamed.
 */
#include "cli/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static const char *const what_names[FOLIAGE_EV_NR] = {
	[FOLIAGE_EV_ACCESS] = "hit",      [FOLIAGE_EV_INSERT] = "insert",
	[FOLIAGE_EV_REFAULT] = "refault", [FOLIAGE_EV_ADD] = "add",
	[FOLIAGE_EV_MOVE] = "move",       [FOLIAGE_EV_SORT] = "sort",
	[FOLIAGE_EV_KEEP] = "keep",       [FOLIAGE_EV_EVICT] = "evict",
	[FOLIAGE_EV_AGE] = "age",
};

static const char *const why_names[FOLIAGE_WHY_NR] = {
	[FOLIAGE_WHY_NONE] = "none",
	[FOLIAGE_WHY_FIRST] = "first",
	[FOLIAGE_WHY_RECENT] = "recent",
	[FOLIAGE_WHY_STALE] = "stale",
	[FOLIAGE_WHY_COUNT] = "count",
	[FOLIAGE_WHY_SATURATED] = "saturated",
	[FOLIAGE_WHY_OVERFLOW] = "overflow",
	[FOLIAGE_WHY_DEFER] = "defer",
	[FOLIAGE_WHY_YOUNG] = "young",
	[FOLIAGE_WHY_PROTECT] = "protect",
	[FOLIAGE_WHY_ZONE] = "zone",
	[FOLIAGE_WHY_LAZY] = "lazy",
	[FOLIAGE_WHY_FORCED_AGE] = "forced_age",
	[FOLIAGE_WHY_PLACE] = "place",
	[FOLIAGE_WHY_ACTIVATE] = "activate",
	[FOLIAGE_WHY_DEACTIVATE] = "deactivate",
	[FOLIAGE_WHY_REFERENCED] = "referenced",
	[FOLIAGE_WHY_SECOND_CHANCE] = "second_chance",
	[FOLIAGE_WHY_PROBATION] = "probation",
	[FOLIAGE_WHY_DIRTY] = "dirty",
	[FOLIAGE_WHY_PINNED] = "pinned",
	[FOLIAGE_WHY_COLD] = "cold",
};

static const char magic[] = "# foliage events 1";
static const char titles[] = "access\tpage\tevent\trule\tfrom\tto\trefs_from\trefs_to";

/* ---- writing ---- */

/* A header value ends with its line: what would break the line is replaced. */
static void write_value(FILE *out, const char *key, const char *value)
{
	fprintf(out, "# %s\t", key);
	for (; *value; value++)
		fputc((unsigned char)*value < ' ' ? '?' : *value, out);
	fputc('\n', out);
}

void events_write_header(FILE *out, const struct events_header *header)
{
	fprintf(out, "%s\n", magic);
	write_value(out, "policy", header->policy);
	write_value(out, "room", header->room);
	write_value(out, "trace", header->trace);
	write_value(out, "places", header->places);
	fprintf(out, "%s\n", titles);
}

static void write_place(FILE *out, int place)
{
	if (place < 0)
		fputs("\t-", out);
	else
		fprintf(out, "\t%d", place);
}

void events_write(void *ctx, const struct foliage_event *event)
{
	const struct events_writer *writer = ctx;
	FILE *out = writer->out;

	fprintf(out, "%llu", (unsigned long long)event->access);
	if (event->what == FOLIAGE_EV_AGE || event->id >= writer->nr_ids)
		fputs("\t-", out);
	else
		fprintf(out, "\t%llu", (unsigned long long)writer->pages[event->id]);
	fprintf(out, "\t%s\t%s", what_names[event->what % FOLIAGE_EV_NR],
		why_names[event->why % FOLIAGE_WHY_NR]);
	write_place(out, event->from);
	write_place(out, event->to);
	fprintf(out, "\t%u\t%u\n", event->refs_from, event->refs_to);
}

/* ---- reading ---- */

static int corrupt(const struct events_reader *reader, const char *reason, struct err *err)
{
	return err_set(err, -EILSEQ, "%s: line %lu: %s", reader->path, reader->line, reason);
}

/* One line without its end; 0 at the end of the file. */
static int read_line(struct events_reader *reader, struct err *err)
{
	ssize_t n;

	errno = 0;
	n = getline(&reader->buffer, &reader->size, reader->in);
	if (n < 0) {
		if (ferror(reader->in))
			return err_set(err, -EIO, "%s: %s", reader->path,
				       strerror(errno ? errno : EIO));
		return 0;
	}
	reader->line++;
	if (reader->buffer[n - 1] != '\n')
		return corrupt(reader, "the file is cut off", err);
	reader->buffer[n - 1] = 0;
	if (strlen(reader->buffer) != (size_t)n - 1)
		return corrupt(reader, "not text", err);
	return 1;
}

static void header_value(struct events_header *header, const char *line)
{
	const struct {
		const char *prefix;
		char *value;
		size_t size;
	} values[] = {
		{"# policy\t", header->policy, sizeof(header->policy)},
		{"# room\t", header->room, sizeof(header->room)},
		{"# trace\t", header->trace, sizeof(header->trace)},
		{"# places\t", header->places, sizeof(header->places)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		size_t n = strlen(values[i].prefix);

		if (!strncmp(line, values[i].prefix, n))
			snprintf(values[i].value, values[i].size, "%s", line + n);
	}
}

int events_open(struct events_reader *reader, const char *path, struct err *err)
{
	int r;

	*reader = (struct events_reader){.path = path};
	reader->in = fopen(path, "r");
	if (!reader->in)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = read_line(reader, err);
	if (r == 0 || (r > 0 && strcmp(reader->buffer, magic) != 0))
		r = err_set(err, -EILSEQ,
			    "%s: not a file of events (as written by foliage replay --events)",
			    path);
	while (r > 0) {
		r = read_line(reader, err);
		if (r == 0)
			r = corrupt(reader, "the file ends in its header", err);
		if (r < 0 || !strcmp(reader->buffer, titles))
			break;
		if (reader->buffer[0] != '#')
			r = corrupt(reader, "neither a comment nor the line of titles", err);
		else
			header_value(&reader->header, reader->buffer);
	}
	if (r < 0) {
		events_close(reader);
		return r;
	}
	return 0;
}

void events_close(struct events_reader *reader)
{
	if (reader->in)
		fclose(reader->in);
	free(reader->buffer);
	reader->in = NULL;
	reader->buffer = NULL;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !*end && !errno && *value <= max;
}

static bool parse_place(const char *text, int32_t *place)
{
	uint64_t value;

	if (text && !strcmp(text, "-")) {
		*place = -1;
		return true;
	}
	if (!parse_number(text, INT32_MAX, &value))
		return false;
	*place = (int32_t)value;
	return true;
}

static bool parse_name(const char *text, const char *const *names, unsigned int nr, uint16_t *value)
{
	for (uint16_t i = 0; text && i < nr; i++) {
		if (!strcmp(text, names[i])) {
			*value = i;
			return true;
		}
	}
	return false;
}

int events_next(struct events_reader *reader, struct event_line *line, struct err *err)
{
	struct foliage_event *event = &line->event;
	char *field[8], *rest;
	uint64_t refs_from, refs_to;
	int r = read_line(reader, err);

	if (r <= 0)
		return r;
	rest = reader->buffer;
	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		field[i] = strsep(&rest, "\t");
	*line = (struct event_line){0};
	line->has_page = field[1] && strcmp(field[1], "-") != 0;
	if (rest || !parse_number(field[0], UINT64_MAX, &event->access) ||
	    (line->has_page && !parse_number(field[1], UINT64_MAX, &line->page)) ||
	    !parse_place(field[4], &event->from) || !parse_place(field[5], &event->to) ||
	    !parse_number(field[6], UINT8_MAX, &refs_from) ||
	    !parse_number(field[7], UINT8_MAX, &refs_to))
		return corrupt(reader, "not an event", err);
	if (!parse_name(field[2], what_names, FOLIAGE_EV_NR, &event->what))
		return corrupt(reader, "unknown event", err);
	if (!parse_name(field[3], why_names, FOLIAGE_WHY_NR, &event->why))
		return corrupt(reader, "unknown rule", err);
	event->refs_from = (uint8_t)refs_from;
	event->refs_to = (uint8_t)refs_to;
	return 1;
}
