/* SPDX-License-Identifier: MIT
 *
 * Executes a scenario's operations on the engine and writes the record: control lines mean here
 * what the guest makes of them there.
 *
 * Of the kernel's run one thing is taken over: the memory of a group that is not pages of the
 * scenario (index nodes, page tables, the process itself). It counts against the limits and is
 * read off the kernel's counters at the next stat.
 */
#include "workload/scenario_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mm/gen.h"
#include "mm/policies.h"
#include "workload/scenario_world.h"

enum { LINE_BYTES = 512, PAGE_BYTES = 4096 };

/* ---- records ---- */

static size_t count_lines(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

int scenario_record_parse(char *text, struct scenario_record *record)
{
	size_t nr = count_lines(text), i = 0;
	char *save = NULL;

	record->text = text;
	record->lines = calloc(nr, sizeof(*record->lines));
	record->entries = calloc(nr, sizeof(*record->entries));
	if (!record->lines || !record->entries)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (*line != ' ') {
			struct scenario_entry *entry = &record->entries[record->nr_entries++];

			entry->head = line;
			entry->lines = record->lines + i;
		} else if (record->nr_entries) {
			record->lines[i++] = line + 1;
			record->entries[record->nr_entries - 1].nr_lines++;
		}
	}
	return 0;
}

static char *read_file(const char *directory, const char *name, size_t *bytes, struct err *err)
{
	char path[4096], *data = NULL;
	size_t room = 0, n = 0, got;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	f = fopen(path, "r");
	if (!f) {
		err_set(err, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	do {
		char *more = realloc(data, (room = 2 * room + 65536) + 1);

		if (!more)
			break;
		data = more;
		got = fread(data + n, 1, room - n, f);
		n += got;
	} while (got && n == room);
	fclose(f);
	if (data)
		data[n] = '\0';
	*bytes = n;
	return data;
}

static int load_record(const struct scenario *s, const char *directory,
		       struct scenario_record *record, struct err *err)
{
	size_t bytes;
	char *text = read_file(directory, "log", &bytes, err);
	int rc;

	if (!text)
		return -ENOENT;
	rc = scenario_record_parse(text, record);
	if (rc)
		return err_set(err, rc, "%s: out of memory", directory);
	record->missed = (uint8_t *)read_file(directory, "missed", &bytes, err);
	if (!record->missed)
		return -ENOENT;
	if (bytes != s->head.nr_accesses)
		return err_set(err, -EILSEQ, "%s/missed: %zu accesses, the scenario has %" PRIu64,
			       directory, bytes, s->head.nr_accesses);
	return 0;
}

int scenario_record_load(const struct scenario *s, const char *directory,
			 struct scenario_record *record, struct err *err)
{
	int rc;

	*record = (struct scenario_record){0};
	rc = load_record(s, directory, record, err);
	if (rc)
		scenario_record_free(record);
	return rc;
}

void scenario_record_free(struct scenario_record *record)
{
	free(record->text);
	free(record->lines);
	free(record->entries);
	free(record->missed);
	*record = (struct scenario_record){0};
}

bool scenario_number(const struct scenario_entry *entry, const char *name, double *value)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < entry->nr_lines; i++)
		if (!strncmp(entry->lines[i], name, n) && entry->lines[i][n] == ' ') {
			*value = strtod(entry->lines[i] + n, NULL);
			return true;
		}
	return false;
}

static double group_number(const struct scenario_entry *stat, const char *group, const char *name)
{
	char key[LINE_BYTES];
	double value = 0;

	snprintf(key, sizeof(key), "group %s %s", group, name);
	return scenario_number(stat, key, &value) ? value : 0;
}

static uint64_t bytes_of(const char *word)
{
	char *end;
	uint64_t n = strtoull(word, &end, 10);

	return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : *end == 'G' ? n << 30 : n;
}

/* The kernel's count of a group's file pages lags a little; where one group holds all the files,
 * they were counted. A group may have paid for up to 63 pages in advance: what exceeds the
 * kernel's own memory by less than that is not in use. */
double scenario_other(const struct scenario *s, const struct scenario_entry *stat,
		      const char *group)
{
	double usage = group_number(stat, group, "memory.current") / PAGE_BYTES, resident = 0;
	double private = group_number(stat, group, "anon") / PAGE_BYTES, kernel;
	bool alone = s->head.nr_groups == 1, anon = false;

	for (uint32_t f = 0; f < s->head.nr_files; f++) {
		char key[LINE_BYTES];
		double n = 0;

		anon |= s->files[f].kind == SCENARIO_ANON;
		snprintf(key, sizeof(key), "resident %s", s->files[f].name);
		if (scenario_number(stat, key, &n))
			resident += n;
	}
	kernel = group_number(stat, group, "kernel") / PAGE_BYTES + (anon ? 0 : private);
	usage -= alone ? resident : group_number(stat, group, "file") / PAGE_BYTES;
	usage -= anon ? private : 0;
	return alone && usage > kernel && usage < kernel + 64 ? kernel : usage;
}

/* ---- control lines ---- */

struct runner {
	const struct scenario *s;
	struct scenario_world world;
	const struct scenario_record *kernel;
	size_t kernel_at; /* entries of the kernel's record that are behind us */
	/* Of each entry that is a stat, for each group: the world's own bookkeeping then, as the
	 * first pass found it. */
	int64_t *slab;
	bool second_pass;
	int room;
	FILE *log;
	struct err *err;
};

static int find_group(const struct runner *r, const char *path)
{
	for (uint32_t i = 0; i < r->s->head.nr_groups; i++)
		if (!strcmp(r->s->groups[i].path, path))
			return (int)i;
	return -1;
}

static const struct scenario_entry *next_stat(struct runner *r)
{
	for (size_t i = r->kernel_at; i < r->kernel->nr_entries; i++)
		if (!strncmp(r->kernel->entries[i].head, "stat ", 5))
			return &r->kernel->entries[i];
	return NULL;
}

/* What is not the scenario's, as of the next stat, less what of it the world itself counts: the
 * files' bookkeeping. The kernel's count of that lags, so the world's own is taken, from a first
 * pass. */
static void apply_limits(struct runner *r)
{
	const struct scenario_entry *stat = next_stat(r);

	for (uint32_t g = 0; g < r->s->head.nr_groups && stat; g++) {
		const char *group = r->s->groups[g].path;
		double slab = ceil((group_number(stat, group, "slab_reclaimable") +
				    group_number(stat, group, "pagetables")) /
				   PAGE_BYTES);

		if (r->second_pass)
			slab = (double)r->slab[(stat - r->kernel->entries) * SCENARIO_GROUPS_MAX +
					       g];
		r->world.fixed[g] = (int64_t)(scenario_other(r->s, stat, group) - slab) - r->room;
	}
	scenario_world_limits(&r->world);
}

static int set_limit(struct runner *r, const char *group, const char *name, const char *value)
{
	static const struct {
		const char *name;
		enum foliage_limit what;
	} table[] = {{"memory.max", FOLIAGE_MAX},
		     {"memory.low", FOLIAGE_LOW},
		     {"memory.min", FOLIAGE_MIN}};
	int g = find_group(r, group);

	for (size_t i = 0; g >= 0 && i < ARRAY_SIZE(table); i++) {
		struct scenario_limit l = {(uint32_t)g, table[i].what,
					   bytes_of(value) / PAGE_BYTES};
		uint32_t k = 0;

		if (strcmp(table[i].name, name))
			continue;
		while (k < r->world.nr_limits &&
		       (r->world.limits[k].group != l.group || r->world.limits[k].what != l.what))
			k++;
		if (k == ARRAY_SIZE(r->world.limits))
			return -E2BIG;
		r->world.limits[k] = l;
		r->world.nr_limits = MAX(r->world.nr_limits, k + 1);
		apply_limits(r);
		return 0;
	}
	return -EOPNOTSUPP;
}

static int set_knob(struct runner *r, const char *name, const char *value)
{
	uint64_t n = strtoull(value, NULL, 10);

	if (!strcmp(name, "read_ahead_kb")) {
		r->world.ra_pages = (uint32_t)n / 4;
	} else if (!strcmp(name, "fault_around")) {
		r->world.fault_around = (uint32_t)n / PAGE_BYTES;
	} else if (!strcmp(name, "swappiness")) {
		for (uint32_t i = 0; i < r->s->head.nr_groups; i++)
			foliage_memcg_set(r->world.engine, r->world.groups[i], FOLIAGE_SWAPPINESS,
					  n);
	} else {
		return -EOPNOTSUPP;
	}
	return 0;
}

static int put_text(struct runner *r, const char *what, const char *prefix)
{
	char *text, *save = NULL;
	int rc = foliage_text(r->world.engine, what, &text);

	if (rc)
		return rc;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		fprintf(r->log, "%s%s\n", prefix, line);
	free(text);
	return 0;
}

static int record_stat(struct runner *r, const char *label)
{
	int rc = 0;

	foliage_flush_stats(r->world.engine);
	fprintf(r->log, "stat %s\n", label);
	for (uint32_t f = 0; f < r->s->head.nr_files; f++)
		if (r->s->files[f].kind != SCENARIO_ANON)
			fprintf(r->log, " resident %s %" PRIu64 "\n", r->s->files[f].name,
				scenario_world_resident(&r->world, f));
	for (uint32_t g = 0; g < r->s->head.nr_groups && !rc; g++) {
		char what[LINE_BYTES], prefix[LINE_BYTES];

		snprintf(what, sizeof(what), "memory.stat:/%s", r->s->groups[g].path);
		snprintf(prefix, sizeof(prefix), " group %s ", r->s->groups[g].path);
		rc = put_text(r, what, prefix);
	}
	/* From here on the next stat counts. */
	while (r->kernel_at < r->kernel->nr_entries) {
		size_t at = r->kernel_at++;
		const char *head = r->kernel->entries[at].head;

		if (strncmp(head, "stat ", 5) || strcmp(head + 5, label))
			continue;
		for (uint32_t g = 0; g < r->s->head.nr_groups && !r->second_pass; g++)
			r->slab[at * SCENARIO_GROUPS_MAX + g] = scenario_world_slab(&r->world, g);
		break;
	}
	apply_limits(r);
	return rc;
}

/* The groups' part of lru_gen_full, as the guest cuts it out. */
static int record_dump(struct runner *r, const char *label)
{
	char *text, *save = NULL, path[LINE_BYTES];
	bool wanted = false;
	int rc = foliage_text(r->world.engine, "lru_gen_full", &text);

	if (rc == -EOPNOTSUPP) { /* a policy without generations */
		fprintf(r->log, "dump %s\n", label);
		return 0;
	}
	if (rc)
		return rc;
	fprintf(r->log, "dump %s\n", label);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "memcg", 5))
			wanted = sscanf(line, "memcg %*u /%500s", path) == 1 &&
				 find_group(r, path) >= 0;
		if (wanted)
			fprintf(r->log, " %s\n", line);
	}
	free(text);
	return 0;
}

static int lru_gen_command(struct runner *r, char sign, const char *group, int back,
			   const char *rest)
{
	char command[LINE_BYTES];
	int g = find_group(r, group), rc;
	struct lruvec *lv;

	if (g < 0 || !r->world.engine->ops->rules)
		return -EOPNOTSUPP;
	lv = lruvec_of(r->world.engine, r->world.groups[g], 0);
	snprintf(command, sizeof(command), "%c %u 0 %" PRIu64 "%s", sign,
		 (unsigned int)r->world.engine->memcgs[r->world.groups[g]].id,
		 gen_max_seq(lv) - (uint64_t)back, rest);
	rc = foliage_lru_gen_write(r->world.engine, &r->world.cpu, command);
	fprintf(r->log, "command %c %s %d%s: %d\n", sign, group, back, rest, rc);
	return 0;
}

/* As writing to memory.reclaim: sessions of at most a quarter of what is left... until all is done
 * or nothing moves. */
static int proactive_reclaim(struct runner *r, const char *text, const char *group,
			     const char *amount)
{
	struct foliage_reclaim_request request = {.swappiness = -1, .proactive = true};
	uint64_t wanted = bytes_of(amount) / PAGE_BYTES, got = 0;
	int g = find_group(r, group), retries = 16;

	if (g < 0)
		return -ENOENT;
	request.memcg = r->world.groups[g];
	while (got < wanted && retries) {
		int64_t n;

		request.nr = MAX((wanted - got) / 4, (uint64_t)SWAP_CLUSTER_MAX);
		n = foliage_reclaim(r->world.engine, &r->world.cpu, &request);
		if (n < 0)
			return (int)n;
		retries -= !n;
		got += (uint64_t)n;
	}
	fprintf(r->log, "command %s: %d\n", text, got < wanted ? -EAGAIN : 0);
	return 0;
}

static int control_text(struct runner *r, const char *text)
{
	char a[64], b[64], c[64];
	int back, at = 0;

	if (sscanf(text, "stat %63s", a) == 1)
		return record_stat(r, a);
	if (sscanf(text, "dump %63s", a) == 1)
		return record_dump(r, a);
	if (!strcmp(text, "flush")) {
		foliage_flush_stats(r->world.engine);
		return 0;
	}
	if (sscanf(text, "lru_gen %1s %63s %d%n", a, b, &back, &at) == 3)
		return lru_gen_command(r, a[0], b, back, text + at);
	if (sscanf(text, "knob %63s %63s", a, b) == 2)
		return set_knob(r, a, b);
	if (sscanf(text, "set %63s %63s %63s", a, b, c) == 3)
		return set_limit(r, a, b, c);
	if (sscanf(text, "reclaim %63s %63s", a, b) == 2)
		return proactive_reclaim(r, text, a, b);
	return sscanf(text, "sleep %d", &back) == 1 ? 0 : -EOPNOTSUPP;
}

static int find_file(const struct runner *r, const char *name)
{
	for (uint32_t i = 0; i < r->s->head.nr_files; i++)
		if (!strcmp(r->s->files[i].name, name))
			return (int)i;
	return -1;
}

static int process_text(struct runner *r, uint32_t process, const char *text)
{
	char name[64], advice[64];
	uint64_t first, nr;

	if (sscanf(text, "fsync %63s", name) == 1 && find_file(r, name) >= 0) {
		scenario_world_fsync(&r->world, (uint32_t)find_file(r, name));
		return 0;
	}
	if (sscanf(text, "fadvise %63s %63s", name, advice) == 2 && find_file(r, name) >= 0)
		return scenario_world_fadvise(&r->world, process, (uint32_t)find_file(r, name),
					      advice);
	if (sscanf(text, "madvise %63s %" SCNu64 " %" SCNu64 " %63s", name, &first, &nr, advice) ==
		    4 &&
	    find_file(r, name) >= 0)
		return scenario_world_madvise(&r->world, process, (uint32_t)find_file(r, name),
					      first, nr, advice);
	return -EOPNOTSUPP;
}

/* ---- the run ---- */

static int run_ops(struct runner *r, uint8_t *missed)
{
	uint64_t access = 0;

	for (uint64_t i = 0; i < r->s->head.nr_ops; i++) {
		const struct scenario_op *op = &r->s->ops[i];
		const char *text = r->s->texts + op->page;
		int rc;

		if (op->code == SCENARIO_CONTROL || op->code == SCENARIO_PROCESS) {
			rc = op->code == SCENARIO_CONTROL ? control_text(r, text)
							  : process_text(r, op->process, text);
			if (rc)
				return err_set(r->err, rc, "engine: '%s': %s", text, strerror(-rc));
			continue;
		}
		rc = scenario_world_access(&r->world, op, missed + access);
		if (rc)
			return err_set(r->err, rc, "engine: access %" PRIu64 ": %s", access,
				       strerror(-rc));
		access += op->nr;
	}
	return 0;
}

static int run_pass(struct runner *r, const char *policy, struct scenario_record *out)
{
	char *text = NULL;
	size_t bytes;
	int rc;

	*out = (struct scenario_record){.missed = calloc(r->s->head.nr_accesses + 1, 1)};
	r->log = open_memstream(&text, &bytes);
	if (!out->missed || !r->log)
		return err_set(r->err, -ENOMEM, "engine: out of memory");
	r->kernel_at = 0;
	rc = scenario_world_open(&r->world, r->s, policy, r->err);
	if (!rc) {
		rc = run_ops(r, out->missed);
		scenario_world_close(&r->world);
	}
	fclose(r->log);
	if (!rc)
		return scenario_record_parse(text, out);
	free(text);
	return rc;
}

int scenario_run(const struct scenario *s, const char *policy, const struct scenario_record *kernel,
		 int room, struct scenario_record *out, struct err *err)
{
	struct runner *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(err, -ENOMEM, "engine: out of memory");
	*r = (struct runner){.s = s, .kernel = kernel, .room = room, .err = err};
	r->slab = calloc(kernel->nr_entries + 1, SCENARIO_GROUPS_MAX * sizeof(*r->slab));
	if (!r->slab) {
		free(r);
		return err_set(err, -ENOMEM, "engine: out of memory");
	}
	rc = run_pass(r, policy, out);
	if (!rc) {
		scenario_record_free(out);
		r->second_pass = true;
		rc = run_pass(r, policy, out);
	}
	if (rc)
		scenario_record_free(out);
	free(r->slab);
	free(r);
	return rc;
}
