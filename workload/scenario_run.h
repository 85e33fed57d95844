/* SPDX-License-Identifier: MIT
 *
 * A scenario executed by the engine, recorded in the form in which the guest records it, so that
 * one reader serves both.
 */
#ifndef FOLIAGE_WORKLOAD_SCENARIO_RUN_H
#define FOLIAGE_WORKLOAD_SCENARIO_RUN_H

#include <stdbool.h>

#include "workload/scenario.h"

/* One recorded moment: "stat w0", "dump w0" or "command ...", and the lines below it. */
struct scenario_entry {
	const char *head;
	const char *const *lines; /* without the blank in front */
	size_t nr_lines;
};

struct scenario_record {
	char *text; /* cut into lines */
	const char **lines;
	struct scenario_entry *entries;
	size_t nr_entries;
	uint8_t *missed; /* [head.nr_accesses] */
};

/* Take a log apart; `text` is kept (malloc'ed). -ENOMEM. */
int scenario_record_parse(char *text, struct scenario_record *record);
/* What the guest left in `directory`: "log" and "missed". */
int scenario_record_load(const struct scenario *s, const char *directory,
			 struct scenario_record *record, struct err *err);
void scenario_record_free(struct scenario_record *record);

/* A number of one entry: "group t pgsteal"; false when it is not there. */
bool scenario_number(const struct scenario_entry *entry, const char *name, double *value);
/* Pages that a group holds besides those that the scenario accesses: an input of the engine's run.
 * */
double scenario_other(const struct scenario *s, const struct scenario_entry *stat,
		      const char *group);

/* Run it. The kernel's record says at each stat how much of a group's limit was not the scenario's
 * pages; `room` pages are added to what is left. */
int scenario_run(const struct scenario *s, const char *policy, const struct scenario_record *kernel,
		 int room, struct scenario_record *out, struct err *err);

#endif
