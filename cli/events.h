/* SPDX-License-Identifier: MIT
 *
 * Files of events: what `foliage replay --events` writes and `foliage explain` reads. Text, one
 * event a line, fields separated by tabs, so that grep, cut and awk work on it:
 *
 *     # foliage events 1
 *     # policy	fg
 *     # room	1000
 *     # trace	w106.u32
 *     # places	generation
 *     access	page	event	rule	from	to	refs_from	refs_to
 *     0	4711	insert	first	-	-	0	0
 *
 * `page` is the trace's own number, "-" when the event is about no page; `from` and `to` are
 * generations or lists, "-" for none.
 */
#ifndef FOLIAGE_CLI_EVENTS_H
#define FOLIAGE_CLI_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "foliage/policy.h"

struct events_header {
	char policy[160], trace[512], room[16], places[16];
};

struct events_writer {
	FILE *out;
	const uint64_t *pages; /* page number of each id */
	uint32_t nr_ids;
};

void events_write_header(FILE *out, const struct events_header *header);
/* A foliage_policy_env.event; the context is a struct events_writer. */
void events_write(void *ctx, const struct foliage_event *event);

struct event_line {
	struct foliage_event event; /* but for the id */
	uint64_t page;
	bool has_page;
};

/* Reads a file of events line by line. */
struct events_reader {
	FILE *in;
	const char *path;
	struct events_header header;
	unsigned long line;
	char *buffer;
	size_t size;
};

int events_open(struct events_reader *reader, const char *path, struct err *err);
/* 1: *line is the next event; 0: the end; -EILSEQ and the like. */
int events_next(struct events_reader *reader, struct event_line *line, struct err *err);
void events_close(struct events_reader *reader);

#endif
