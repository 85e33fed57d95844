/* SPDX-License-Identifier: MIT */
#ifndef FOLIAGE_TESTS_SUPPORT_ANCHORS_H
#define FOLIAGE_TESTS_SUPPORT_ANCHORS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

enum { MAX_ANCHORS = 1000 };

struct anchor {
	char trace[64], policy[24], trust[64];
	uint32_t pages;
	uint64_t accesses, misses;
};

extern struct anchor anchors[MAX_ANCHORS];
extern size_t nr_anchors;

/* Group setup: read the table when the shared folder is there. */
int load_anchors(void **unused);
/* The shared folder; without it the test is skipped, and says so. */
const char *need_shared(void);
/* Every record one page, with what offline policies need. */
void resolve(const char *shared, const char *name, struct resolved *trace);
uint64_t misses_of(const char *policy, const struct resolved *trace, uint32_t pages);

#endif
