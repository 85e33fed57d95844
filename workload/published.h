/* SPDX-License-Identifier: MIT
 *
 * The numbers that the threads on reclaim published, as `suite,case,metric,policy,value`.
 */
#ifndef FOLIAGE_WORKLOAD_PUBLISHED_H
#define FOLIAGE_WORKLOAD_PUBLISHED_H

#include <stdbool.h>

#include "workload/csv.h"

struct published {
	struct csv csv;
	int suite, case_name, metric, policy, value;
};

int published_load(struct published *p, struct err *err);
void published_free(struct published *p);
/* False when nothing was published for it. */
bool published_find(const struct published *p, const char *suite, const char *case_name,
		    const char *metric, const char *policy, double *value);

#endif
