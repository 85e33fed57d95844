/* SPDX-License-Identifier: MIT
 *
 * Two passes: the trace is read into rows, while numbers of processes, files and stretches of 2 MiB
 * are collected; then the stretches of each file are put side by side and the rows, translated, are
 * dealt out to their processes.
 */
#include "workload/script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { BATCH = 2048, STRETCH = 512, STRETCH_SHIFT = 9 };

/* Keys in order of first appearance, and a table over them. */
struct keys {
	uint64_t *log;
	uint32_t nr, room;
	uint32_t *slots; /* index into the log and one; 0: free */
};

struct row {
	uint64_t page;
	uint32_t nr, process, slot;
	uint8_t op;
};

struct stretch {
	uint64_t touched[STRETCH / 64];
	uint64_t existed[STRETCH / 64]; /* touched first by something else than a write */
	uint32_t base;                  /* page that its first one becomes */
};

struct loader {
	struct script *script;
	struct trace *trace;
	const char *name;
	struct keys processes, files, slots, stretches;
	uint32_t *slot_of; /* of each slot key: number within its process */
	uint32_t room_slot_of;
	uint64_t *last_row; /* of each process */
	uint64_t *first_row;
	uint32_t room_processes;
	struct stretch *stretch;
	uint32_t room_stretch;
	struct row *rows;
	uint64_t nr_rows, room_rows;
	uint64_t last_key; /* of the stretch that was looked up last, and one */
	uint32_t last_stretch;
};

/* ---- keys ---- */

static uint64_t mix(uint64_t x)
{
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static int rehash(struct keys *k)
{
	uint32_t room = k->room ? 2 * k->room : 256;
	uint64_t *log = realloc(k->log, room * sizeof(*log));
	uint32_t *slots;

	if (!log)
		return -ENOMEM;
	k->log = log;
	slots = calloc((size_t)room * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(k->slots);
	k->slots = slots;
	k->room = room;
	for (uint32_t i = 0; i < k->nr; i++) {
		uint64_t at = mix(log[i]);

		while (slots[at % (2 * room)])
			at++;
		slots[at % (2 * room)] = i + 1;
	}
	return 0;
}

static int key_index(struct keys *k, uint64_t key, uint32_t *index)
{
	uint64_t at = mix(key);

	if (k->nr == k->room && rehash(k))
		return -ENOMEM;
	for (; k->slots[at % (2 * k->room)]; at++) {
		*index = k->slots[at % (2 * k->room)] - 1;
		if (k->log[*index] == key)
			return 0;
	}
	k->slots[at % (2 * k->room)] = k->nr + 1;
	*index = k->nr;
	k->log[k->nr++] = key;
	return 0;
}

static void keys_free(struct keys *k)
{
	free(k->log);
	free(k->slots);
}

/* Room for number `i` in an array, zeroed. */
static int make_room(void *array, uint32_t *room, uint32_t i, size_t size)
{
	char **data = array, *more;
	uint32_t wanted = MAX(*room, 64u);

	if (i < *room)
		return 0;
	while (wanted <= i)
		wanted *= 2;
	more = realloc(*data, wanted * size);
	if (!more)
		return -ENOMEM;
	memset(more + *room * size, 0, (wanted - *room) * size);
	*data = more;
	*room = wanted;
	return 0;
}

/* ---- first pass ---- */

static char *process_name(const struct trace *trace, uint32_t number)
{
	const char *name = trace_process_name(trace, number);

	return name ? strndup(name, strcspn(name, "[")) : strdup("");
}

static int find_process(struct loader *l, uint32_t number, uint32_t *process)
{
	struct script *s = l->script;
	uint32_t before = l->processes.nr, room = l->room_processes, more = room;
	int r = key_index(&l->processes, number, process);

	if (r || l->processes.nr == before)
		return r;
	r = make_room(&s->processes, &room, *process, sizeof(*s->processes));
	room = more;
	if (!r)
		r = make_room(&l->first_row, &room, *process, sizeof(*l->first_row));
	if (!r)
		r = make_room(&l->last_row, &more, *process, sizeof(*l->last_row));
	if (r)
		return r;
	l->room_processes = more;
	s->nr_processes = l->processes.nr;
	l->first_row[*process] = l->nr_rows;
	s->processes[*process].name = process_name(l->trace, number);
	return s->processes[*process].name ? 0 : -ENOMEM;
}

/* A file that is written before anything else happens to it is made by who writes. */
static int find_file(struct loader *l, uint32_t number, enum trace_op op, uint32_t process,
		     uint32_t *file)
{
	struct script *s = l->script;
	uint32_t before = l->files.nr;
	const char *name;
	struct script_file *files;
	int r = key_index(&l->files, number, file);

	if (r || l->files.nr == before)
		return r;
	files = realloc(s->files, l->files.nr * sizeof(*files));
	if (!files)
		return -ENOMEM;
	s->files = files;
	name = trace_file_name(l->trace, number);
	files[*file] = (struct script_file){
		.name = name ? strdup(name) : NULL,
		.writer = op == TRACE_WRITE ? process : NO_WRITER,
	};
	s->nr_files = l->files.nr;
	return name && !files[*file].name ? -ENOMEM : 0;
}

static bool is_private(const struct script_file *file)
{
	return file->name && !strcmp(file->name, "memory");
}

/* The slot of a file in its process, and its number among all slots. */
static int find_slot(struct loader *l, uint32_t process, uint32_t file, uint32_t *slot,
		     uint32_t *of_all)
{
	struct script_process *p = &l->script->processes[process];
	uint32_t before = l->slots.nr;
	struct script_slot *slots;
	int r = key_index(&l->slots, (uint64_t)process << 32 | file, of_all);

	if (!r)
		r = make_room(&l->slot_of, &l->room_slot_of, *of_all, sizeof(*l->slot_of));
	if (!r && l->slots.nr > before) {
		slots = realloc(p->slots, (p->nr_slots + 1) * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		p->slots = slots;
		slots[p->nr_slots] = (struct script_slot){.file = file};
		l->slot_of[*of_all] = p->nr_slots++;
	}
	if (!r)
		*slot = l->slot_of[*of_all];
	return r;
}

/* What the stretches of a row belong to: files have even numbers, memories odd ones. */
static uint32_t space_of(const struct loader *l, uint32_t file, uint32_t slot_of_all)
{
	return is_private(&l->script->files[file]) ? slot_of_all * 2 + 1 : file * 2;
}

static int find_stretch(struct loader *l, uint32_t space, uint64_t page, uint32_t *index)
{
	uint64_t key = (uint64_t)space << 32 | page >> STRETCH_SHIFT;
	int r = 0;

	if (key + 1 != l->last_key) {
		r = key_index(&l->stretches, key, &l->last_stretch);
		if (!r)
			r = make_room(&l->stretch, &l->room_stretch, l->last_stretch,
				      sizeof(*l->stretch));
		l->last_key = r ? 0 : key + 1;
	}
	*index = l->last_stretch;
	return r;
}

static int touch(struct loader *l, uint32_t space, const struct trace_record *record)
{
	for (uint64_t page = record->page; page < record->page + record->nr; page++) {
		uint32_t i, bit = page % STRETCH;
		int r = find_stretch(l, space, page, &i);

		if (r)
			return r;
		if (bit_test(l->stretch[i].touched, bit))
			continue;
		bit_set(l->stretch[i].touched, bit);
		if (record->op != TRACE_WRITE)
			bit_set(l->stretch[i].existed, bit);
		l->script->touched++;
	}
	return 0;
}

static int add_row(struct loader *l, const struct row *row)
{
	if (l->nr_rows == l->room_rows) {
		uint64_t room = l->room_rows ? 2 * l->room_rows : 4096;
		struct row *rows = realloc(l->rows, room * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		l->rows = rows;
		l->room_rows = room;
	}
	l->last_row[row->process] = l->nr_rows;
	l->script->processes[row->process].nr_steps++;
	l->rows[l->nr_rows++] = *row;
	return 0;
}

static int take_work(struct loader *l, struct row *row)
{
	int r = 0;

	l->script->timed = true;
	for (uint64_t left = row->page; left && !r; left -= row->page) {
		row->page = MIN(left, (uint64_t)UINT32_MAX);
		r = add_row(l, row);
	}
	return r;
}

static int take(struct loader *l, const struct trace_record *record, struct err *err)
{
	struct row row = {.page = record->page, .nr = record->nr, .op = record->op};
	uint32_t file, of_all;
	int r = find_process(l, record->process, &row.process);

	if (l->nr_rows >= SCRIPT_RECORDS_MAX)
		return err_set(err, -E2BIG,
			       "%s: more than %d requests: take a part of it "
			       "(foliage convert --limit)",
			       l->name, SCRIPT_RECORDS_MAX);
	if (!r && record->op == TRACE_WORK)
		return take_work(l, &row);
	if ((record->page + record->nr) >> STRETCH_SHIFT >= UINT32_MAX ||
	    record->page + record->nr < record->page)
		return err_set(
			err, -E2BIG,
			"%s: request %llu: page %llu is further out than a file can be: are these "
			"numbers of objects?",
			l->name, (unsigned long long)l->nr_rows + 1,
			(unsigned long long)record->page);
	if (!r)
		r = find_file(l, record->file, record->op, row.process, &file);
	if (!r)
		r = find_slot(l, row.process, file, &row.slot, &of_all);
	if (!r)
		r = touch(l, space_of(l, file, of_all), record);
	l->script->accesses += record->nr;
	return r ? r : add_row(l, &row);
}

static int read_all(struct loader *l, struct err *err)
{
	struct trace_record *records = malloc(BATCH * sizeof(*records));
	ssize_t n = records ? 0 : -ENOMEM;
	int r = 0;

	while (records && !r && (n = trace_read(l->trace, records, BATCH, err)) > 0)
		for (ssize_t i = 0; i < n && !r; i++)
			r = take(l, &records[i], err);
	free(records);
	return n < 0 ? (int)n : r;
}

/* ---- second pass ---- */

static int compare_keys(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t highest(const uint64_t *bits)
{
	for (uint32_t word = STRETCH / 64; word--;)
		if (bits[word])
			return word * 64 + fls64(bits[word]);
	return 0;
}

/* The sizes that follow from a stretch which begins at page `base` of its space. */
static void grow(struct loader *l, uint32_t space, const struct stretch *stretch)
{
	struct script *s = l->script;

	if (space % 2) {
		uint64_t key = l->slots.log[space / 2];
		struct script_process *p = &s->processes[key >> 32];

		p->slots[l->slot_of[space / 2]].pages = stretch->base + STRETCH;
	} else {
		struct script_file *f = &s->files[space / 2];

		f->pages = stretch->base + highest(stretch->touched);
		if (highest(stretch->existed))
			f->from_start = stretch->base + highest(stretch->existed);
	}
}

/* Every space's stretches side by side. */
static int place_stretches(struct loader *l, struct err *err)
{
	uint64_t *sorted = malloc((l->stretches.nr + 1) * sizeof(*sorted)), files = 0, pages = 0;
	int r = sorted ? 0 : -ENOMEM;

	if (!r && l->stretches.nr) {
		memcpy(sorted, l->stretches.log, l->stretches.nr * sizeof(*sorted));
		qsort(sorted, l->stretches.nr, sizeof(*sorted), compare_keys);
	}
	for (uint32_t i = 0; !r && i < l->stretches.nr; i++) {
		uint32_t index, space = (uint32_t)(sorted[i] >> 32);

		r = key_index(&l->stretches, sorted[i], &index);
		if (i && sorted[i - 1] >> 32 != space)
			pages = 0;
		files += space % 2 ? 0 : STRETCH;
		if (MAX(files, pages + STRETCH) > SCRIPT_PAGES_MAX)
			r = err_set(
				err, -E2BIG,
				"%s: its %llu pages are scattered over files of more than %d GiB",
				l->name, (unsigned long long)l->script->touched,
				SCRIPT_PAGES_MAX >> (30 - TRACE_PAGE_SHIFT));
		if (r)
			break;
		l->stretch[index].base = (uint32_t)pages;
		pages += STRETCH;
		grow(l, space, &l->stretch[index]);
	}
	free(sorted);
	return r;
}

static int deal_out(struct loader *l)
{
	struct script *s = l->script;

	for (uint32_t i = 0; i < s->nr_processes; i++) {
		struct script_process *p = &s->processes[i];

		p->steps = malloc(p->nr_steps * sizeof(*p->steps) + 1);
		if (!p->steps)
			return -ENOMEM;
		p->nr_steps = 0;
	}
	for (uint64_t i = 0; i < l->nr_rows; i++) {
		const struct row *row = &l->rows[i];
		struct script_process *p = &s->processes[row->process];
		struct script_step *step = &p->steps[p->nr_steps++];
		uint32_t of_all, stretch, file;

		*step = (struct script_step){.page = (uint32_t)row->page,
					     .nr = row->nr,
					     .slot = row->slot,
					     .op = row->op};
		if (row->op == TRACE_WORK)
			continue;
		file = p->slots[row->slot].file;
		if (key_index(&l->slots, (uint64_t)row->process << 32 | file, &of_all) ||
		    find_stretch(l, space_of(l, file, of_all), row->page, &stretch))
			return -ENOMEM;
		step->page = l->stretch[stretch].base + (uint32_t)(row->page % STRETCH);
	}
	return 0;
}

struct end {
	uint64_t row;
	uint32_t process;
};

static int compare_ends(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return x->row < y->row ? -1 : x->row > y->row;
}

/* Who had ended before whom began. */
static int order_processes(struct loader *l)
{
	struct script *s = l->script;
	struct end *ends = malloc(s->nr_processes * sizeof(*ends));
	uint32_t ended = 0;

	s->ends = malloc(s->nr_processes * sizeof(*s->ends));
	if (!ends || !s->ends) {
		free(ends);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->nr_processes; i++)
		ends[i] = (struct end){.row = l->last_row[i], .process = i};
	qsort(ends, s->nr_processes, sizeof(*ends), compare_ends);
	for (uint32_t i = 0; i < s->nr_processes; i++) {
		s->ends[i] = ends[i].process;
		s->processes[ends[i].process].rank = i;
	}
	for (uint32_t i = 0; i < s->nr_processes; i++) {
		while (ended < s->nr_processes && ends[ended].row < l->first_row[i])
			ended++;
		s->processes[i].after = ended;
	}
	free(ends);
	return 0;
}

int script_load(struct script *script, struct trace *trace, const char *name, struct err *err)
{
	struct loader l = {.script = script, .trace = trace, .name = name};
	int r;

	*script = (struct script){0};
	err->text[0] = 0;
	r = read_all(&l, err);
	if (!r && !script->accesses)
		r = err_set(err, -ENODATA, "%s: no page access in it", name);
	if (!r)
		r = place_stretches(&l, err);
	if (!r)
		r = deal_out(&l);
	if (!r)
		r = order_processes(&l);
	keys_free(&l.processes);
	keys_free(&l.files);
	keys_free(&l.slots);
	keys_free(&l.stretches);
	free(l.slot_of);
	free(l.first_row);
	free(l.last_row);
	free(l.stretch);
	free(l.rows);
	if (r && !err->text[0])
		err_set(err, r, "%s: out of memory", name);
	if (r)
		script_free(script);
	return r;
}

void script_free(struct script *script)
{
	for (uint32_t i = 0; i < script->nr_processes; i++) {
		free(script->processes[i].name);
		free(script->processes[i].steps);
		free(script->processes[i].slots);
	}
	for (uint32_t i = 0; i < script->nr_files; i++)
		free(script->files[i].name);
	free(script->processes);
	free(script->files);
	free(script->ends);
	*script = (struct script){0};
}
