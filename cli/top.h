/* SPDX-License-Identifier: MIT
 *
 * What the files of `foliage top` share: two readings of a segment, and what they say together.
 */
#ifndef FOLIAGE_CLI_TOP_H
#define FOLIAGE_CLI_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include "foliage/segment.h"

struct top_view {
	const char *name; /* of the segment */
	const struct foliage_segment_identity *identity;
	bool alive;
	struct foliage_segment_values before, now; /* readings of two updates */
	double seconds; /* between them; 0: there was only one update, there are no rates */
	double age;     /* seconds since the last update */
};

/* Change a second of a counter that was `before` and is `now`; NAN when there are no rates. */
double top_rate(const struct top_view *view, uint64_t before, uint64_t now);
/* Hits of all accesses; NAN without any. */
double top_hit_ratio(uint64_t hits, uint64_t misses);

/* For people: lines of at most `width` characters. */
void top_text(const struct top_view *view, int width, FILE *out);
/* One object with all numbers, totals and rates. */
void top_json(const struct top_view *view, FILE *out);
/* A line for the whole, named "*", and one for each group; -ENOMEM. */
int top_csv(const struct top_view *view, FILE *out);

/* Read again: true when the values are of a later update. */
typedef bool (*top_reader)(void *ctx, struct top_view *view);

/* Show the view and what it becomes, on the terminal, until q or SIGINT. 0; -ENOTSUP: the tool was
 * built without ncurses; -ENOTTY: no terminal, or one that ncurses does not know. */
int top_screen(struct top_view *view, double interval, top_reader again, void *ctx);
/* "6.4.20221231", NULL: built without. */
const char *top_screen_version(void);

#endif
