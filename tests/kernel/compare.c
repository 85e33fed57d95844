/* SPDX-License-Identifier: MIT
 *
 * The host's side of a comparison.
 *
 *     kernel_compare compile SCENARIO OUT
 *             write the compiled scenario; prints LRU= and ZRAM= for boot.sh
 *     kernel_compare show SCENARIO DIRECTORY [POLICY]
 *             run the engine and put it beside what the kernel left in DIRECTORY
 *     kernel_compare spread SCENARIO DIRECTORY [POLICY]
 *             the same in short, with -6..6 pages of room more: what one page is worth
 *
 * For each window (from one stat to the next): accesses on which kernel and engine agree whether
 * the page was in memory, then every counter that either side moved by at least 16. For each dump:
 * its lines that differ. Exit 1 when the scenario expects more (its "expect" lines); the warm-up
 * is judged as well.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload/scenario_run.h"

struct window {
	const struct scenario_entry *kernel, *engine; /* at its end */
	const struct scenario_entry *kernel_before, *engine_before;
	uint64_t first, end; /* accesses */
};

struct verdict {
	double agree, within; /* limits in percent; 0: none */
	bool failed;
};

static const char *const counters[] = {
	"workingset_refault_file",
	"workingset_refault_anon",
	"workingset_activate_file",
	"workingset_activate_anon",
	"workingset_restore_file",
	"workingset_restore_anon",
	"pgscan",
	"pgsteal",
	"pgactivate",
	"pgdeactivate",
	"pgrefill",
};
static const char *const levels[] = {"inactive_anon", "active_anon", "inactive_file",
				     "active_file"};

/* Counters on which a limit is set. */
static bool judged(const char *name)
{
	return !strncmp(name, "workingset_refault", 18) || !strcmp(name, "pgsteal");
}

static void print_number(const char *scope, const char *name, double kernel, double engine,
			 struct verdict *v)
{
	double deviation = kernel > 0 ? 100 * (engine - kernel) / kernel : NAN;

	if (isnan(deviation))
		printf("%-26s %-26s %10.0f %10.0f          -\n", scope, name, kernel, engine);
	else
		printf("%-26s %-26s %10.0f %10.0f %+9.3f%%\n", scope, name, kernel, engine,
		       deviation);
	if (judged(name) && v->within > 0 && !(fabs(deviation) <= v->within)) {
		printf("%-26s %-26s exceeds %g%%\n", scope, name, v->within);
		v->failed = true;
	}
}

static double number_of(const struct scenario_entry *entry, const char *group, const char *name)
{
	char key[256];
	double value = 0;

	snprintf(key, sizeof(key), "group %s %s", group, name);
	return entry && scenario_number(entry, key, &value) ? value : 0;
}

static void print_agreement(const struct window *w, const struct scenario_record *kernel,
			    const struct scenario_record *engine, const char *label,
			    struct verdict *v)
{
	uint64_t differ = 0, n = w->end - w->first, kernel_misses = 0, engine_misses = 0;
	double agree;

	for (uint64_t i = w->first; i < w->end; i++) {
		differ += kernel->missed[i] != engine->missed[i];
		kernel_misses += kernel->missed[i];
		engine_misses += engine->missed[i];
	}
	if (!n)
		return;
	agree = 100 * (1 - (double)differ / (double)n);
	printf("%-26s %-26s %10" PRIu64 " accesses, %" PRIu64 " differ: %.4f%% agree\n", label,
	       "hit or miss", n, differ, agree);
	print_number(label, "misses", (double)kernel_misses, (double)engine_misses, v);
	if (agree < v->agree) {
		printf("%-26s %-26s below %g%%\n", label, "hit or miss", v->agree);
		v->failed = true;
	}
}

static void print_window(const struct scenario *s, const struct window *w,
			 const struct scenario_record *kernel, const struct scenario_record *engine,
			 struct verdict *v)
{
	const char *label = w->kernel->head + strlen("stat ");

	print_agreement(w, kernel, engine, label, v);
	for (uint32_t g = 0; g < s->head.nr_groups; g++) {
		const char *group = s->groups[g].path;
		char scope[128];

		snprintf(scope, sizeof(scope), "%s %s", label, group);
		printf("%-26s %-26s %10.0f\n", scope, "other pages (input)",
		       scenario_other(s, w->kernel, group));
		for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
			double k = number_of(w->kernel, group, counters[i]) -
				   number_of(w->kernel_before, group, counters[i]);
			double e = number_of(w->engine, group, counters[i]) -
				   number_of(w->engine_before, group, counters[i]);

			if (k >= 16 || e >= 16)
				print_number(scope, counters[i], k, e, v);
		}
		for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
			double k = number_of(w->kernel, group, levels[i]) / 4096;
			double e = number_of(w->engine, group, levels[i]) / 4096;

			if (k >= 16 || e >= 16)
				print_number(scope, levels[i], k, e, v);
		}
	}
}

/* A dump's line without the age, whose clock is the host's. */
static void without_age(const char *line, char *out, size_t bytes)
{
	unsigned long long seq, age, anon, file;
	int at = 0;
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *end = copy + strlen(copy); end > copy && end[-1] == ' ';)
		*--end = '\0';
	if (!strncmp(copy, "memcg", 5))
		snprintf(out, bytes, "memcg %s", strchr(copy, '/'));
	else if (strlen(copy) > 22 && copy[0] == ' ' && copy[11] == ' ' && copy[10] != ' ' &&
		 sscanf(copy, "%llu %llu%n %llu%*1[x ] %llu", &seq, &age, &at, &anon, &file) >= 3 &&
		 copy[12 + 9] != ' ' && strlen(copy) < 50)
		snprintf(out, bytes, "%11llu %10s%s", seq, "", copy + at);
	else
		snprintf(out, bytes, "%s", copy);
}

static void print_dump(const struct scenario_entry *k, const struct scenario_entry *e)
{
	size_t same = 0, n = k->nr_lines > e->nr_lines ? k->nr_lines : e->nr_lines;

	for (size_t i = 0; i < n; i++) {
		char a[512] = "", b[512] = "";

		if (i < k->nr_lines)
			without_age(k->lines[i], a, sizeof(a));
		if (i < e->nr_lines)
			without_age(e->lines[i], b, sizeof(b));
		if (!strcmp(a, b))
			same++;
		else
			printf("  kernel %s\n  engine %s\n", a, b);
	}
	printf("%-26s %zu of %zu lines equal\n", k->head, same, n);
}

/* Accesses before the operation that is the stat of this label. */
static uint64_t accesses_before(const struct scenario *s, const char *label, uint64_t *op)
{
	uint64_t access = 0;

	for (uint64_t i = 0; i < s->head.nr_ops; i++) {
		const char *text = s->texts + s->ops[i].page;

		if (s->ops[i].code < SCENARIO_NR_ACCESSES)
			access += s->ops[i].nr;
		else if (s->ops[i].code == SCENARIO_CONTROL && !strncmp(text, "stat ", 5) &&
			 i >= *op && !strcmp(text + 5, label)) {
			*op = i + 1;
			return access;
		}
	}
	return access;
}

static void print_all(const struct scenario *s, const struct scenario_record *kernel,
		      const struct scenario_record *engine, struct verdict *v)
{
	struct window w = {0};
	uint64_t op = 0;
	size_t i = 0, k = 0;

	printf("%-26s %-26s %10s %10s %10s\n", "where", "what", "kernel", "engine", "deviation");
	while (i < kernel->nr_entries && k < engine->nr_entries) {
		const struct scenario_entry *a = &kernel->entries[i], *b = &engine->entries[k];

		if (!strncmp(a->head, "vmstat", 6))
			break;
		if (!strncmp(a->head, "stat ", 5)) {
			w.first = w.end;
			w.end = accesses_before(s, a->head + 5, &op);
			w.kernel_before = w.kernel;
			w.engine_before = w.engine;
			w.kernel = a;
			w.engine = b;
			print_window(s, &w, kernel, engine, v);
		} else if (!strncmp(a->head, "dump ", 5)) {
			print_dump(a, b);
		} else if (strcmp(a->head, b->head)) {
			printf("  kernel %s\n  engine %s\n", a->head, b->head);
		}
		i++;
		k++;
	}
}

static uint64_t differing(const struct scenario *s, const struct scenario_record *a,
			  const struct scenario_record *b)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->head.nr_accesses; i++)
		n += a->missed[i] != b->missed[i];
	return n;
}

/* The engine's run, or the one of the runs with a little more or less room that agrees best. */
static int best_run(const struct scenario *s, const char *policy,
		    const struct scenario_record *kernel, int *room, struct scenario_record *best,
		    struct err *err)
{
	int rc = scenario_run(s, policy, kernel, 0, best, err);

	*room = 0;
	for (int k = -s->room_within; k <= s->room_within && !rc; k++) {
		struct scenario_record other;

		rc = k ? scenario_run(s, policy, kernel, k, &other, err) : 0;
		if (!k || rc)
			continue;
		if (differing(s, kernel, &other) < differing(s, kernel, best)) {
			struct scenario_record swap = other;

			other = *best;
			*best = swap;
			*room = k;
		}
		scenario_record_free(&other);
	}
	return rc;
}

static double total(const struct scenario *s, const struct scenario_record *record,
		    const char *name)
{
	const struct scenario_entry *last = NULL;
	double sum = 0;

	for (size_t i = 0; i < record->nr_entries; i++)
		if (!strncmp(record->entries[i].head, "stat ", 5))
			last = &record->entries[i];
	for (uint32_t g = 0; g < s->head.nr_groups; g++)
		sum += number_of(last, s->groups[g].path, name);
	return sum;
}

static int spread(const struct scenario *s, const char *directory, const char *policy,
		  struct err *err)
{
	static const char *const names[] = {"workingset_refault_file", "workingset_refault_anon",
					    "pgsteal"};
	struct scenario_record kernel, engine;
	int rc = scenario_record_load(s, directory, &kernel, err);

	printf("%6s %12s %14s %14s %10s\n", "room", "differ", "refault_file", "refault_anon",
	       "pgsteal");
	for (int k = -6; k <= 6 && !rc; k++) {
		rc = scenario_run(s, policy, &kernel, k, &engine, err);
		if (rc)
			break;
		printf("%+6d %12" PRIu64, k, differing(s, &kernel, &engine));
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			double a = total(s, &kernel, names[i]), b = total(s, &engine, names[i]);

			printf(" %+12.3f%%", a > 0 ? 100 * (b - a) / a : 0);
		}
		putchar('\n');
		scenario_record_free(&engine);
	}
	scenario_record_free(&kernel);
	return rc;
}

static int show(const struct scenario *s, const char *directory, const char *policy,
		struct err *err)
{
	struct scenario_record kernel, engine;
	struct verdict v = {.agree = s->agree, .within = s->within};
	int rc = scenario_record_load(s, directory, &kernel, err), room;

	if (rc)
		return rc;
	rc = best_run(s, policy, &kernel, &room, &engine, err);
	if (!rc) {
		if (s->room_within)
			printf("judged with %+d pages of room, the best of -%d..+%d\n", room,
			       s->room_within, s->room_within);
		print_all(s, &kernel, &engine, &v);
		scenario_record_free(&engine);
	}
	scenario_record_free(&kernel);
	return rc ? rc : v.failed;
}

int main(int argc, char **argv)
{
	struct scenario s;
	struct err err = {""};
	int rc;

	if (argc < 4 ||
	    (strcmp(argv[1], "compile") && strcmp(argv[1], "show") && strcmp(argv[1], "spread"))) {
		fprintf(stderr, "usage: kernel_compare compile SCENARIO OUT | show|spread SCENARIO "
				"DIRECTORY [POLICY]\n");
		return 2;
	}
	rc = scenario_compile(argv[2], &s, &err);
	if (!rc && argv[1][0] == 'c') {
		rc = scenario_write(&s, argv[3], &err);
		printf("LRU=%s\n", s.lru);
		if (s.zram)
			printf("ZRAM=%" PRIu64 "\n", s.zram);
	} else if (!rc) {
		const char *policy = strcmp(s.lru, "y") ? "clru-6.12:flush_every=0" : "mglru-6.12";

		if (*s.policy)
			policy = s.policy;
		policy = argc > 4 ? argv[4] : policy;
		rc = argv[1][1] == 'h' ? show(&s, argv[3], policy, &err)
				       : spread(&s, argv[3], policy, &err);
	}
	if (rc < 0)
		fprintf(stderr, "kernel_compare: %s\n", err.text);
	scenario_free(&s);
	return rc < 0 ? 2 : rc;
}
