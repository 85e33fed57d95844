/* SPDX-License-Identifier: MIT
 *
 * Two readings of a statistics segment as text, which the screen shows too, as json and as csv.
 */
#include "cli/top.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "cli/table.h"

enum { BAR = 32, LINE = 512 };

/* ---- what two readings say ---- */

double top_rate(const struct top_view *view, uint64_t before, uint64_t now)
{
	if (view->seconds <= 0 || now < before || now == UINT64_MAX)
		return NAN;
	return (double)(now - before) / view->seconds;
}

double top_hit_ratio(uint64_t hits, uint64_t misses)
{
	if (hits == UINT64_MAX || misses == UINT64_MAX)
		return NAN;
	return hits + misses ? (double)hits / ((double)hits + (double)misses) : NAN;
}

static uint64_t gained(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* Hit ratio of the accesses between the readings. */
static double ratio_now(const struct top_view *v, uint64_t hits0, uint64_t hits, uint64_t misses0,
			uint64_t misses)
{
	if (hits == UINT64_MAX || misses == UINT64_MAX)
		return NAN;
	return v->seconds > 0 ? top_hit_ratio(gained(hits0, hits), gained(misses0, misses)) : NAN;
}

/* Part of the time between the readings that was stood still; more than 1 when several did. */
static double stalled(const struct top_view *v, uint64_t before, uint64_t now)
{
	return top_rate(v, before, now) / 1e9;
}

static const char *group_name(const struct foliage_segment_group *g)
{
	return g->name[0] ? g->name : "?";
}

static size_t nr_groups(const struct foliage_segment_values *values)
{
	return (size_t)MIN(values->nr_groups, (uint64_t)FOLIAGE_SEGMENT_GROUPS);
}

/* The numbers of the whole, in the order of the json. */
enum {
	MEMBER_COUNTER = 1 << 0, /* has a rate */
	MEMBER_BYTES = 1 << 1,
	MEMBER_ALWAYS = 1 << 2, /* people see it even when it is 0 */
};

struct member {
	const char *key, *title; /* no title: people see it elsewhere, or not */
	unsigned int flags;
	size_t offset;
};

static const struct member members[] = {
	{"budget", NULL, 0, offsetof(struct foliage_segment_values, budget)},
	{"metadata_bytes", NULL, 0, offsetof(struct foliage_segment_values, metadata_bytes)},
	{"frame_bytes", NULL, 0, offsetof(struct foliage_segment_values, frame_bytes)},
	{"pages", NULL, 0, offsetof(struct foliage_segment_values, pages)},
	{"page_bytes", NULL, 0, offsetof(struct foliage_segment_values, page_bytes)},
	{"dirty_bytes", NULL, 0, offsetof(struct foliage_segment_values, dirty_bytes)},
	{"writeback_bytes", NULL, 0, offsetof(struct foliage_segment_values, writeback_bytes)},
	{"hits", "hits", MEMBER_COUNTER | MEMBER_ALWAYS,
	 offsetof(struct foliage_segment_values, hits)},
	{"misses", "misses", MEMBER_COUNTER | MEMBER_ALWAYS,
	 offsetof(struct foliage_segment_values, misses)},
	{"refaults", "refaults", MEMBER_COUNTER | MEMBER_ALWAYS,
	 offsetof(struct foliage_segment_values, refaults)},
	{"evictions", "evictions", MEMBER_COUNTER | MEMBER_ALWAYS,
	 offsetof(struct foliage_segment_values, evictions)},
	{"created", NULL, MEMBER_COUNTER, offsetof(struct foliage_segment_values, created)},
	{"discarded", "discarded", MEMBER_COUNTER,
	 offsetof(struct foliage_segment_values, discarded)},
	{"readahead", "read ahead", MEMBER_COUNTER,
	 offsetof(struct foliage_segment_values, readahead)},
	{"no_room", "no room", MEMBER_COUNTER, offsetof(struct foliage_segment_values, no_room)},
	{"waits", "waits", MEMBER_COUNTER, offsetof(struct foliage_segment_values, waits)},
	{"read_bytes", "read", MEMBER_COUNTER | MEMBER_BYTES,
	 offsetof(struct foliage_segment_values, read_bytes)},
	{"written_bytes", "written", MEMBER_COUNTER | MEMBER_BYTES,
	 offsetof(struct foliage_segment_values, written_bytes)},
	{"disk_read_bytes", "disk read", MEMBER_COUNTER | MEMBER_BYTES,
	 offsetof(struct foliage_segment_values, disk_read_bytes)},
	{"disk_written_bytes", "disk written", MEMBER_COUNTER | MEMBER_BYTES,
	 offsetof(struct foliage_segment_values, disk_written_bytes)},
	{"io_errors", "I/O errors", MEMBER_COUNTER,
	 offsetof(struct foliage_segment_values, io_errors)},
	{"stall_some_ns", NULL, MEMBER_COUNTER,
	 offsetof(struct foliage_segment_values, pressure.some_ns)},
	{"stall_full_ns", NULL, MEMBER_COUNTER,
	 offsetof(struct foliage_segment_values, pressure.full_ns)},
};

static uint64_t member_of(const struct foliage_segment_values *values, const struct member *m)
{
	uint64_t value;

	memcpy(&value, (const char *)values + m->offset, sizeof(value));
	return value;
}

/* The group as it was: groups come and go, and with them their places. */
static struct foliage_segment_group group_before(const struct top_view *v,
						 const struct foliage_segment_group *g)
{
	for (size_t i = 0; i < nr_groups(&v->before); i++) {
		if (!strcmp(v->before.groups[i].name, g->name))
			return v->before.groups[i];
	}
	return *g;
}

/* ---- for people ---- */

struct text {
	FILE *out;
	int width;
};

/* One line, cut at the width; texts of the program may contain anything. */
static void __attribute__((format(printf, 2, 3))) line(struct text *t, const char *format, ...)
{
	char text[LINE];
	va_list arguments;
	int columns = 0;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (const unsigned char *s = (const unsigned char *)text; *s && columns < t->width;) {
		size_t n = utf8_length(s);

		if (!n || *s < 0x20 || *s == 0x7f) {
			fputc('?', t->out);
			n = 1;
		} else {
			fwrite(s, 1, n, t->out);
		}
		s += n;
		columns++;
	}
	fputc('\n', t->out);
}

/* 1536 as "1.5 KiB"; a limit that is none as "-". */
static const char *size_text(uint64_t bytes, char text[32])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes == UINT64_MAX)
		return "-";
	while (value >= 1000 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 32, unit && value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static const char *rate_text(double rate, char text[32])
{
	if (isnan(rate))
		return "-";
	return rate < 1e18 ? count_text((uint64_t)llround(rate), text) : "-";
}

static const char *percent_text(double ratio, char text[32])
{
	if (isnan(ratio))
		return "-";
	snprintf(text, 32, "%.2f %%", 100 * ratio);
	return text;
}

static const char *bytes_rate_text(double rate, char text[32])
{
	return isnan(rate) ? "-" : size_text((uint64_t)llround(rate), text);
}

/* Without colour and without characters that a terminal may lack. */
static const char *bar_text(double part, char text[BAR + 1])
{
	int full = isnan(part) ? 0 : (int)lround(MIN(MAX(part, 0.0), 1.0) * BAR);

	memset(text, '.', BAR);
	memset(text, '#', (size_t)full);
	text[BAR] = '\0';
	return text;
}

static void put_title(struct text *t, const struct top_view *v)
{
	const struct foliage_segment_identity *id = v->identity;

	line(t, "%s, process %" PRIu64 "%s%s%s%s", id->program, id->pid,
	     id->policy[0] ? ", policy " : "", id->policy, id->label[0] ? ", " : "", id->label);
	if (!v->alive)
		line(t, "THE PROCESS HAS ENDED: these are its last values");
	else if (!v->now.updates)
		line(t, "has published nothing yet");
	else if (v->age > 5)
		line(t, "no update for %.0f seconds", v->age);
	else
		line(t, "%s", "");
}

static void put_memory(struct text *t, const struct foliage_segment_values *now)
{
	uint64_t in_memory = now->metadata_bytes + now->frame_bytes;
	char a[32], b[32], c[32], bar[BAR + 1];

	line(t, "memory     %10s of %-10s [%s]  tables %s", size_text(in_memory, a),
	     size_text(now->budget, b),
	     bar_text(now->budget ? (double)in_memory / (double)now->budget : NAN, bar),
	     size_text(now->metadata_bytes, c));
	line(t, "pages      %10s with %s, dirty %s, in writeback %s", count_text(now->pages, a),
	     size_text(now->page_bytes, bar), size_text(now->dirty_bytes, b),
	     size_text(now->writeback_bytes, c));
}

static void put_counter(struct text *t, const struct top_view *v, const struct member *m)
{
	uint64_t was = member_of(&v->before, m), now = member_of(&v->now, m);
	double rate = top_rate(v, was, now);
	char a[32], b[32];

	if (m->flags & MEMBER_BYTES)
		line(t, "%-12s %16s %20s", m->title, bytes_rate_text(rate, a), size_text(now, b));
	else
		line(t, "%-12s %16s %20s", m->title, rate_text(rate, a), count_text(now, b));
}

static void put_rates(struct text *t, const struct top_view *v)
{
	const struct foliage_segment_values *now = &v->now, *was = &v->before;
	double ratio = ratio_now(v, was->hits, now->hits, was->misses, now->misses);
	char a[32], b[32], bar[BAR + 1];

	line(t, "hit ratio  %10s in all  %-8s [%s]", percent_text(ratio, a),
	     percent_text(top_hit_ratio(now->hits, now->misses), b), bar_text(ratio, bar));
	line(t, "%s", "");
	line(t, "%-12s %16s %20s", "", "a second", "in all");
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const struct member *m = &members[i];

		/* What never happened need not take a line, but for the four that are asked for. */
		if (m->title && (m->flags & MEMBER_ALWAYS || member_of(now, m)))
			put_counter(t, v, m);
	}
}

static void put_pressure(struct text *t, const struct top_view *v)
{
	const struct foliage_segment_pressure *now = &v->now.pressure, *was = &v->before.pressure;
	char a[32], b[32];

	line(t, "stalled    %10s of the time some threads, %s all of them",
	     percent_text(stalled(v, was->some_ns, now->some_ns), a),
	     percent_text(stalled(v, was->full_ns, now->full_ns), b));
}

static void put_lists(struct text *t, const char *type, const struct foliage_segment_lists *l)
{
	uint64_t sum = 0, nr;
	char a[32], bar[BAR + 1];

	if (l->order != FOLIAGE_SEGMENT_GENERATIONS && l->order != FOLIAGE_SEGMENT_CLASSIC)
		return;
	nr = l->order == FOLIAGE_SEGMENT_CLASSIC ? 2 : l->max_seq - l->min_seq + 1;
	nr = MIN(nr, (uint64_t)FOLIAGE_SEGMENT_GENS);
	for (uint64_t i = 0; i < nr; i++)
		sum += l->pages[i];
	if (!sum)
		return;
	line(t, "%s", "");
	line(t, "%s pages by age, the oldest first", type);
	for (uint64_t i = 0; i < nr; i++) {
		char name[32];

		snprintf(name, sizeof(name), "generation %" PRIu64, l->min_seq + i);
		line(t, "  %-16s %12s  [%s]",
		     l->order == FOLIAGE_SEGMENT_GENERATIONS ? name
		     : i                                     ? "active"
							     : "inactive",
		     count_text(l->pages[i], a), bar_text((double)l->pages[i] / (double)sum, bar));
	}
}

static void put_group(struct text *t, const struct top_view *v,
		      const struct foliage_segment_group *now)
{
	const struct foliage_segment_group was = group_before(v, now);
	char current[32], max[32], low[32], ratio[32], refaults[32], stall[32];

	line(t, "  %-20s %10s %10s %10s %9s %12s %9s", group_name(now),
	     size_text(now->current, current), size_text(now->low, low), size_text(now->max, max),
	     percent_text(ratio_now(v, was.hits, now->hits, was.misses, now->misses), ratio),
	     rate_text(top_rate(v, was.refaults, now->refaults), refaults),
	     percent_text(stalled(v, was.pressure.some_ns, now->pressure.some_ns), stall));
}

static void put_groups(struct text *t, const struct top_view *v)
{
	if (!v->now.nr_groups)
		return;
	line(t, "%s", "");
	line(t, "  %-20s %10s %10s %10s %9s %12s %9s", "group", "current", "low", "max", "hits",
	     "refaults/s", "stalled");
	for (size_t i = 0; i < nr_groups(&v->now); i++)
		put_group(t, v, &v->now.groups[i]);
	if (v->now.nr_groups > nr_groups(&v->now))
		line(t, "  and %" PRIu64 " more", v->now.nr_groups - nr_groups(&v->now));
}

void top_text(const struct top_view *view, int width, FILE *out)
{
	struct text t = {.out = out, .width = width};

	put_title(&t, view);
	put_memory(&t, &view->now);
	put_pressure(&t, view);
	put_rates(&t, view);
	put_lists(&t, "file", &view->now.file);
	put_lists(&t, "anonymous", &view->now.anon);
	put_groups(&t, view);
}

/* ---- json ---- */

static void json_real(FILE *out, const char *key, double value)
{
	if (isnan(value))
		fprintf(out, ", \"%s\": null", key);
	else
		fprintf(out, ", \"%s\": %.6f", key, value);
}

static void json_count(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, ", \"%s\": %" PRIu64, key, value);
}

/* Limits that are none and numbers that nobody counts are null. */
static void json_known(FILE *out, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		fprintf(out, ", \"%s\": null", key);
	else
		json_count(out, key, value);
}

static void json_text(FILE *out, const char *key, const char *value)
{
	fprintf(out, ", \"%s\": ", key);
	json_string(out, value);
}

static void json_lists(FILE *out, const char *key, const struct foliage_segment_lists *l)
{
	uint64_t nr = l->order == FOLIAGE_SEGMENT_CLASSIC ? 2 : l->max_seq - l->min_seq + 1;

	fprintf(out, ",\n \"%s\": ", key);
	if (l->order != FOLIAGE_SEGMENT_GENERATIONS && l->order != FOLIAGE_SEGMENT_CLASSIC) {
		fputs("null", out);
		return;
	}
	fputs(l->order == FOLIAGE_SEGMENT_CLASSIC ? "{\"kind\": \"inactive, active\""
						  : "{\"kind\": \"generations\"",
	      out);
	if (l->order == FOLIAGE_SEGMENT_GENERATIONS) {
		json_count(out, "min_seq", l->min_seq);
		json_count(out, "max_seq", l->max_seq);
	}
	fputs(", \"pages\": [", out);
	for (uint64_t i = 0; i < MIN(nr, (uint64_t)FOLIAGE_SEGMENT_GENS); i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", l->pages[i]);
	fputs("]}", out);
}

static void json_pressure(FILE *out, const struct foliage_segment_pressure *p)
{
	static const char *const keys[2][3] = {
		{"some_avg10", "some_avg60", "some_avg300"},
		{"full_avg10", "full_avg60", "full_avg300"},
	};

	for (int i = 0; i < 3; i++)
		fprintf(out, ", \"%s\": %.2f", keys[0][i], (double)p->some_avg[i] / 100);
	for (int i = 0; i < 3; i++)
		fprintf(out, ", \"%s\": %.2f", keys[1][i], (double)p->full_avg[i] / 100);
}

static void json_group(FILE *out, const struct top_view *v, const struct foliage_segment_group *g)
{
	const struct foliage_segment_group was = group_before(v, g);

	fputs("{\"name\": ", out);
	json_string(out, group_name(g));
	json_count(out, "current", g->current);
	json_known(out, "min", g->min);
	json_known(out, "low", g->low);
	json_known(out, "high", g->high);
	json_known(out, "max", g->max);
	json_known(out, "hits", g->hits);
	json_known(out, "misses", g->misses);
	json_count(out, "refaults", g->refaults);
	json_count(out, "evictions", g->evictions);
	json_real(out, "hit_ratio", top_hit_ratio(g->hits, g->misses));
	json_real(out, "hits_per_s", top_rate(v, was.hits, g->hits));
	json_real(out, "misses_per_s", top_rate(v, was.misses, g->misses));
	json_real(out, "refaults_per_s", top_rate(v, was.refaults, g->refaults));
	json_count(out, "stall_some_ns", g->pressure.some_ns);
	json_count(out, "stall_full_ns", g->pressure.full_ns);
	json_pressure(out, &g->pressure);
	fputc('}', out);
}

static void json_members(const struct top_view *v, FILE *out)
{
	fputs(",\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const struct member *m = &members[i];
		uint64_t now = member_of(&v->now, m);
		char key[64];

		fprintf(out, "%s\"%s\": %" PRIu64, i ? ",\n " : " ", m->key, now);
		if (!(m->flags & MEMBER_COUNTER))
			continue;
		snprintf(key, sizeof(key), "%s_per_s", m->key);
		json_real(out, key, top_rate(v, member_of(&v->before, m), now));
	}
}

void top_json(const struct top_view *v, FILE *out)
{
	const struct foliage_segment_values *now = &v->now, *was = &v->before;

	fputs("{\"segment\": ", out);
	json_string(out, v->name);
	json_text(out, "program", v->identity->program);
	json_count(out, "pid", v->identity->pid);
	fprintf(out, ", \"alive\": %s", v->alive ? "true" : "false");
	json_text(out, "policy", v->identity->policy);
	json_text(out, "label", v->identity->label);
	json_count(out, "updates", now->updates);
	json_real(out, "age_s", now->updates ? v->age : NAN);
	json_real(out, "interval_s", v->seconds > 0 ? v->seconds : NAN);
	json_real(out, "hit_ratio", ratio_now(v, was->hits, now->hits, was->misses, now->misses));
	json_real(out, "hit_ratio_in_all", top_hit_ratio(now->hits, now->misses));
	json_members(v, out);
	json_pressure(out, &now->pressure);
	json_lists(out, "file", &now->file);
	json_lists(out, "anon", &now->anon);
	json_count(out, "nr_groups", now->nr_groups);
	fputs(",\n \"groups\": [", out);
	for (size_t i = 0; i < nr_groups(now); i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		json_group(out, v, &now->groups[i]);
	}
	fputs("]}\n", out);
}

/* ---- csv ---- */

enum {
	COL_SEGMENT,
	COL_GROUP,
	COL_BYTES,
	COL_MAX,
	COL_HITS,
	COL_MISSES,
	COL_REFAULTS,
	COL_EVICTIONS,
	COL_RATIO,
	COL_HITS_S,
	COL_MISSES_S,
	COL_REFAULTS_S,
	COL_SOME,
	COL_FULL,
	NR_COLS
};

static const struct table_column csv_columns[NR_COLS] = {
	[COL_SEGMENT] = {.key = "segment", .kind = TABLE_TEXT},
	[COL_GROUP] = {.key = "group", .kind = TABLE_TEXT},
	[COL_BYTES] = {.key = "bytes", .kind = TABLE_COUNT},
	[COL_MAX] = {.key = "max", .kind = TABLE_COUNT},
	[COL_HITS] = {.key = "hits", .kind = TABLE_COUNT},
	[COL_MISSES] = {.key = "misses", .kind = TABLE_COUNT},
	[COL_REFAULTS] = {.key = "refaults", .kind = TABLE_COUNT},
	[COL_EVICTIONS] = {.key = "evictions", .kind = TABLE_COUNT},
	[COL_RATIO] = {.key = "hit_ratio", .kind = TABLE_REAL, .precise = 6},
	[COL_HITS_S] = {.key = "hits_per_s", .kind = TABLE_REAL, .precise = 3},
	[COL_MISSES_S] = {.key = "misses_per_s", .kind = TABLE_REAL, .precise = 3},
	[COL_REFAULTS_S] = {.key = "refaults_per_s", .kind = TABLE_REAL, .precise = 3},
	[COL_SOME] = {.key = "stall_some_ns", .kind = TABLE_COUNT},
	[COL_FULL] = {.key = "stall_full_ns", .kind = TABLE_COUNT},
};

static int csv_real(struct table *table, size_t column, double value)
{
	return isnan(value) ? 0 : table_real(table, column, value);
}

/* Limits that are none and numbers that nobody counts stay empty. */
static int csv_known(struct table *table, size_t column, uint64_t value)
{
	return value == UINT64_MAX ? 0 : table_count(table, column, value);
}

static int csv_row(struct table *t, const struct top_view *v,
		   const struct foliage_segment_group *was, const struct foliage_segment_group *now)
{
	bool failed = table_row(t) || table_text(t, COL_SEGMENT, v->name) ||
		      table_text(t, COL_GROUP, group_name(now)) ||
		      table_count(t, COL_BYTES, now->current) || csv_known(t, COL_MAX, now->max) ||
		      csv_known(t, COL_HITS, now->hits) || csv_known(t, COL_MISSES, now->misses) ||
		      table_count(t, COL_REFAULTS, now->refaults) ||
		      table_count(t, COL_EVICTIONS, now->evictions) ||
		      csv_real(t, COL_RATIO, top_hit_ratio(now->hits, now->misses)) ||
		      csv_real(t, COL_HITS_S, top_rate(v, was->hits, now->hits)) ||
		      csv_real(t, COL_MISSES_S, top_rate(v, was->misses, now->misses)) ||
		      csv_real(t, COL_REFAULTS_S, top_rate(v, was->refaults, now->refaults)) ||
		      table_count(t, COL_SOME, now->pressure.some_ns) ||
		      table_count(t, COL_FULL, now->pressure.full_ns);

	return failed ? -ENOMEM : 0;
}

/* The whole as if it were a group. */
static struct foliage_segment_group whole(const struct foliage_segment_values *values)
{
	return (struct foliage_segment_group){
		.name = "*",
		.current = values->metadata_bytes + values->frame_bytes,
		.max = values->budget,
		.hits = values->hits,
		.misses = values->misses,
		.refaults = values->refaults,
		.evictions = values->evictions,
		.pressure = values->pressure,
	};
}

int top_csv(const struct top_view *v, FILE *out)
{
	struct table *table = table_create(csv_columns, NR_COLS);
	struct foliage_segment_group was = whole(&v->before), now = whole(&v->now);
	int r = table ? csv_row(table, v, &was, &now) : -ENOMEM;

	for (size_t i = 0; i < nr_groups(&v->now) && !r; i++) {
		was = group_before(v, &v->now.groups[i]);
		r = csv_row(table, v, &was, &v->now.groups[i]);
	}
	if (!r)
		table_print(table, TABLE_CSV, 0, table_rows(table), out);
	table_free(table);
	return r;
}
