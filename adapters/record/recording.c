/* SPDX-License-Identifier: MIT
 *
 * Records are collected and written a thousand at a time; a name is written just before the first
 * record that needs it.
 */
#include "adapters/record/recording.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/bits.h"
#include "trace/names.h"
#include "trace/write.h"

enum { BATCH = 1024, NAME_MAX_BYTES = 4096 };

/* What an id stands for. */
struct entry {
	char *name;        /* NULL: none given */
	uint32_t number;   /* in the trace; 0: not used yet */
	bool out, renamed; /* kept out by a filter; its name has to be written */
};

struct table {
	struct entry *entries;
	uint32_t room;
	uint32_t next; /* number to give */
	enum trace_name_kind kind;
	const char *patterns; /* NULL: all */
};

struct recording {
	char *path;
	struct trace_writer *writer;
	struct trace_record batch[BATCH];
	size_t used;
	struct table files, processes;
	struct names keys; /* of files; the number of a key indexes numbers[] */
	uint32_t *numbers; /* [room_numbers] the trace's number of a key's file, 0: none yet */
	uint32_t *key_of;  /* [files.room] a file's key, 0: none */
	uint32_t room_keys, room_numbers;
	char *file_patterns, *process_patterns;
	bool anonymize, keeps_work;
	uint64_t secret[2];
	struct recording_counts counts;
	int failed;
	struct err why;
};

/* ---- names that tell nothing ---- */

static inline uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* SipHash-2-4: without the key, which is never stored, a guessed name cannot be checked. */
static uint64_t keyed_hash(const uint64_t key[2], const char *text)
{
	uint64_t v[4] = {
		key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
	size_t length = strlen(text), at = 0;
	bool last = false;

	while (!last) {
		uint64_t word = 0;
		size_t n = MIN(length - at, (size_t)8);

		memcpy(&word, text + at, n);
		last = n < 8;
		if (last)
			word |= (uint64_t)length << 56;
		at += n;
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- tables of ids ---- */

static int fail(struct recording *r, int code)
{
	if (!r->failed) {
		r->failed = code;
		if (!r->why.text[0])
			err_set(&r->why, code, "%s: %s", r->path, strerror(-code));
	}
	return r->failed;
}

static struct entry *entry_of(struct recording *r, struct table *table, uint32_t id)
{
	if (id >= table->room) {
		uint32_t room = MAX(table->room * 2, MAX(id + 1, 256u));
		struct entry *entries = id < UINT32_MAX / 4
						? realloc(table->entries, room * sizeof(*entries))
						: NULL;

		if (!entries) {
			fail(r, -ENOMEM);
			return NULL;
		}
		memset(entries + table->room, 0, (room - table->room) * sizeof(*entries));
		table->entries = entries;
		table->room = room;
	}
	return &table->entries[id];
}

/* Whether a name is one that the filter lets through. */
static bool matches(const char *patterns, const char *name)
{
	char pattern[NAME_MAX_BYTES];

	while (*patterns) {
		size_t n = strcspn(patterns, ",");

		if (n < sizeof(pattern)) {
			memcpy(pattern, patterns, n);
			pattern[n] = 0;
			if (!fnmatch(pattern, name, 0))
				return true;
		}
		patterns += n + (patterns[n] == ',');
	}
	return false;
}

static int name_entry(struct recording *r, struct table *table, struct entry *e, const char *name,
		      const char *shown)
{
	char hashed[64];

	e->out = table->patterns && !matches(table->patterns, name);
	if (r->anonymize) {
		snprintf(hashed, sizeof(hashed), "%s-%016llx",
			 table->kind == TRACE_NAME_FILE ? "file" : "process",
			 (unsigned long long)keyed_hash(r->secret, shown));
		shown = hashed;
	}
	if (e->name && !strcmp(e->name, shown))
		return 0;
	free(e->name);
	e->name = strdup(shown);
	e->renamed = true;
	return e->name ? 0 : fail(r, -ENOMEM);
}

/* The key's number; a file that is known by the key already keeps its number. */
static int set_key(struct recording *r, uint32_t file, const char *key)
{
	uint32_t number;
	int code = names_intern(&r->keys, key, strlen(key), &number);

	if (code)
		return fail(r, code);
	if (file >= r->room_keys) {
		uint32_t room = r->files.room;
		uint32_t *keys = realloc(r->key_of, room * sizeof(*keys));

		if (!keys)
			return fail(r, -ENOMEM);
		memset(keys + r->room_keys, 0, (room - r->room_keys) * sizeof(*keys));
		r->key_of = keys;
		r->room_keys = room;
	}
	if (number >= r->room_numbers) {
		uint32_t room = MAX(number + 1, r->room_numbers * 2);
		uint32_t *numbers = realloc(r->numbers, room * sizeof(*numbers));

		if (!numbers)
			return fail(r, -ENOMEM);
		memset(numbers + r->room_numbers, 0, (room - r->room_numbers) * sizeof(*numbers));
		r->numbers = numbers;
		r->room_numbers = room;
	}
	r->key_of[file] = number;
	return 0;
}

int recording_file(struct recording *r, uint32_t file, const char *key, const char *name)
{
	struct entry *e = r->failed ? NULL : entry_of(r, &r->files, file);
	int code = e ? name_entry(r, &r->files, e, name, name) : r->failed;

	return !code && key ? set_key(r, file, key) : code;
}

int recording_process(struct recording *r, uint32_t process, uint32_t pid, const char *name)
{
	struct entry *e = r->failed ? NULL : entry_of(r, &r->processes, process);
	char shown[NAME_MAX_BYTES];

	if (!e)
		return r->failed;
	snprintf(shown, sizeof(shown), "%s[%u]", name, pid);
	return name_entry(r, &r->processes, e, name, shown);
}

/* ---- records ---- */

static int write_batch(struct recording *r)
{
	size_t n = r->used;
	int code;

	r->used = 0;
	code = n ? trace_write(r->writer, r->batch, n, &r->why) : 0;
	return code ? fail(r, code) : 0;
}

/* A number and, when it is new or renamed, its name in the trace. */
static int use_entry(struct recording *r, struct table *table, struct entry *e)
{
	int code;

	if (!e->number) {
		if (table->next >= NAMES_MAX)
			return fail(r, -E2BIG);
		e->number = table->next++;
	}
	if (!e->renamed)
		return 0;
	e->renamed = false;
	/* What comes before is still under the old name. */
	code = write_batch(r);
	if (!code)
		code = trace_write_name(r->writer, table->kind, e->number, e->name, &r->why);
	return code ? fail(r, code) : 0;
}

/* Ids of one key share a number, whichever of them is used first. */
static int use_file(struct recording *r, struct entry *e, uint32_t file)
{
	uint32_t *number =
		file < r->room_keys && r->key_of[file] ? &r->numbers[r->key_of[file]] : &e->number;
	int code;

	e->number = *number;
	code = use_entry(r, &r->files, e);
	*number = e->number;
	return code;
}

static bool kept_out(const struct table *table, const struct entry *e)
{
	return e->out || (table->patterns && !e->name);
}

static int add(struct recording *r, const struct trace_record *record)
{
	r->batch[r->used++] = *record;
	r->counts.records++;
	r->counts.pages += record->nr;
	r->counts.pages_by_op[record->op] += record->nr;
	return r->used == BATCH ? write_batch(r) : 0;
}

int recording_access(struct recording *r, enum trace_op op, uint32_t file, uint32_t process,
		     uint64_t first, uint64_t last)
{
	struct entry *f = r->failed ? NULL : entry_of(r, &r->files, file);
	struct entry *p = f ? entry_of(r, &r->processes, process) : NULL;
	int code = 0;

	if (!p)
		return r->failed;
	if (kept_out(&r->files, f) || kept_out(&r->processes, p) || last < first)
		return 0;
	if (!f->number || f->renamed)
		code = use_file(r, f, file);
	if (!code && (!p->number || p->renamed))
		code = use_entry(r, &r->processes, p);
	while (!code) {
		uint64_t nr = MIN(last - first + 1, (uint64_t)TRACE_REQUEST_MAX);
		const struct trace_record record = {
			.page = first,
			.nr = (uint32_t)nr,
			.file = f->number,
			.process = p->number,
			.op = (uint8_t)op,
		};

		code = add(r, &record);
		if (last - first < nr)
			break;
		first += nr;
	}
	return code;
}

int recording_work(struct recording *r, uint32_t process, uint64_t ns)
{
	struct entry *p = r->failed ? NULL : entry_of(r, &r->processes, process);
	int code = 0;

	if (!p)
		return r->failed;
	if (!r->keeps_work || kept_out(&r->processes, p))
		return 0;
	if (!p->number || p->renamed)
		code = use_entry(r, &r->processes, p);
	if (code)
		return code;
	r->batch[r->used++] =
		(struct trace_record){.page = ns, .process = p->number, .op = TRACE_WORK};
	return r->used == BATCH ? write_batch(r) : 0;
}

int recording_flush(struct recording *r, struct err *err)
{
	int code = r->failed ? r->failed : write_batch(r);

	if (!code) {
		code = trace_flush(r->writer, &r->why);
		if (code)
			fail(r, code);
	}
	return code ? err_set(err, code, "%s", r->why.text) : 0;
}

void recording_counts(const struct recording *r, struct recording_counts *counts)
{
	*counts = r->counts;
	counts->files = r->files.next - 1;
	counts->processes = r->processes.next - 1;
}

/* ---- beginning and end ---- */

static void table_free(struct table *table)
{
	for (uint32_t i = 0; i < table->room; i++)
		free(table->entries[i].name);
	free(table->entries);
}

static void recording_free(struct recording *r)
{
	table_free(&r->files);
	table_free(&r->processes);
	names_free(&r->keys);
	free(r->numbers);
	free(r->key_of);
	free(r->file_patterns);
	free(r->process_patterns);
	free(r->path);
	free(r);
}

static char *copy(const char *text, int *code)
{
	char *s = text ? strdup(text) : NULL;

	if (text && !s)
		*code = -ENOMEM;
	return s;
}

int recording_create(const struct recording_options *options, struct recording **recording,
		     struct err *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	int code = 0;

	if (!r)
		return err_set(err, -ENOMEM, "%s: no memory", options->path);
	r->path = copy(options->path, &code);
	r->file_patterns = copy(options->files, &code);
	r->process_patterns = copy(options->processes, &code);
	r->files = (struct table){.next = 1, .kind = TRACE_NAME_FILE, .patterns = r->file_patterns};
	r->processes = (struct table){
		.next = 1, .kind = TRACE_NAME_PROCESS, .patterns = r->process_patterns};
	r->anonymize = options->anonymize;
	if (code)
		err_set(err, code, "%s: no memory", options->path);
	else if (r->anonymize && getrandom(r->secret, sizeof(r->secret), 0) < 0)
		code = err_set(err, -errno, "no random key for --anonymize: %s", strerror(errno));
	if (!code)
		code = trace_create(r->path, NULL, TRACE_WRITE_IN_PLACE, &r->writer, err);
	if (code) {
		recording_free(r);
		return code;
	}
	r->keeps_work = !strcmp(trace_writer_format(r->writer), "foliage");
	*recording = r;
	return 0;
}

int recording_finish(struct recording *r, struct err *err)
{
	int code = r->failed ? r->failed : write_batch(r);

	if (code) {
		err_set(err, code, "%s", r->why.text);
		trace_discard(r->writer);
	} else {
		code = trace_commit(r->writer, err);
	}
	recording_free(r);
	return code;
}

void recording_discard(struct recording *r)
{
	if (!r)
		return;
	trace_discard(r->writer);
	if (strcmp(r->path, "-") != 0)
		unlink(r->path);
	recording_free(r);
}
