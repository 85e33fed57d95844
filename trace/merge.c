/* SPDX-License-Identifier: MIT
 *
 * See merge.h. Numbers are given in order of first use, number 0 stays "none".
 */
#include "trace/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trace/names.h"

/* From the numbers of the trace at hand to those of the whole; 0: none given yet. */
struct numbers {
	uint32_t *to;
	uint32_t room, next;
	enum trace_name_kind kind;
};

struct merge {
	struct trace_writer *writer;
	const struct trace *trace;
	struct numbers files, processes;
	struct names paths;
	uint32_t *path_number; /* of each path, 0: none given yet */
	uint32_t room_paths;
};

struct merge *merge_create(struct trace_writer *writer)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->writer = writer;
	m->files = (struct numbers){.next = 1, .kind = TRACE_NAME_FILE};
	m->processes = (struct numbers){.next = 1, .kind = TRACE_NAME_PROCESS};
	return m;
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	free(m->files.to);
	free(m->processes.to);
	free(m->path_number);
	names_free(&m->paths);
	free(m);
}

static void forget(struct numbers *numbers)
{
	if (numbers->to)
		memset(numbers->to, 0, numbers->room * sizeof(*numbers->to));
}

void merge_next(struct merge *m, const struct trace *trace)
{
	m->trace = trace;
	forget(&m->files);
	forget(&m->processes);
}

static int make_room(uint32_t **array, uint32_t *room, uint32_t i)
{
	uint32_t wanted = MAX(i + 1, *room * 2), *more;

	if (i < *room)
		return 0;
	more = realloc(*array, wanted * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + *room, 0, (wanted - *room) * sizeof(*more));
	*array = more;
	*room = wanted;
	return 0;
}

/* Where the number of a path is kept; NULL: no memory. */
static uint32_t *number_of_path(struct merge *m, const char *path)
{
	uint32_t index;

	if (names_intern(&m->paths, path, strlen(path), &index) ||
	    make_room(&m->path_number, &m->room_paths, index))
		return NULL;
	return &m->path_number[index];
}

static int give_number(struct merge *m, struct numbers *numbers, uint32_t number, const char *name,
		       struct err *err)
{
	bool path = numbers->kind == TRACE_NAME_FILE && name && *name == '/';
	uint32_t *shared = path ? number_of_path(m, name) : NULL;

	if (path && !shared)
		return err_set(err, -ENOMEM, "no memory");
	if (shared && *shared) {
		numbers->to[number] = *shared;
		return 0;
	}
	numbers->to[number] = numbers->next++;
	if (shared)
		*shared = numbers->to[number];
	return name ? trace_write_name(m->writer, numbers->kind, numbers->to[number], name, err)
		    : 0;
}

static int renumber(struct merge *m, struct numbers *numbers, uint32_t *number, struct err *err)
{
	const char *name;
	int r = 0;

	if (make_room(&numbers->to, &numbers->room, *number))
		return err_set(err, -ENOMEM, "no memory");
	if (!numbers->to[*number]) {
		name = numbers->kind == TRACE_NAME_FILE ? trace_file_name(m->trace, *number)
							: trace_process_name(m->trace, *number);
		r = give_number(m, numbers, *number, name, err);
	}
	*number = numbers->to[*number];
	return r;
}

int merge_records(struct merge *m, struct trace_record *records, size_t n, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		r = renumber(m, &m->processes, &records[i].process, err);
		if (!r && records[i].op != TRACE_WORK)
			r = renumber(m, &m->files, &records[i].file, err);
	}
	return r;
}
