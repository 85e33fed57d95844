/* SPDX-License-Identifier: MIT
 *
 * Names: the files and processes that a trace speaks of, by number.
 */
#ifndef FOLIAGE_TRACE_NAMES_H
#define FOLIAGE_TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name {
	uint32_t number;
	char *text;
};

/* A log of names given, in order, and an open-addressing table over it: from text for names_intern,
 * from number for names_set. One structure is used with one of the two only. */
struct names {
	struct name *log;
	uint32_t nr, room;
	uint32_t *slots; /* index into the log + 1; 0: free */
	uint32_t nr_slots;
	bool by_text;
};

/* Page identity keeps 24 bits for the file; processes have the same limit. */
#define NAMES_MAX (UINT32_C(1) << 24)

/* The number of a text, from 1 on in order of first appearance; -ENOMEM, -E2BIG. */
int names_intern(struct names *names, const char *text, size_t length, uint32_t *number);
/* Give a number a name; a later one replaces an earlier one. -ENOMEM, -E2BIG. */
int names_set(struct names *names, uint32_t number, const char *text, size_t length);
const char *names_get(const struct names *names, uint32_t number); /* NULL: none */
void names_free(struct names *names);

#endif
