/* SPDX-License-Identifier: MIT
 *
 * What the comparisons with published numbers share.
 */
#ifndef FOLIAGE_TESTS_SUPPORT_PUBLISHED_H
#define FOLIAGE_TESTS_SUPPORT_PUBLISHED_H

#include "workload/kernel_compare.h"

/* Skip the test, and say so, when this build has no such policy. */
void need_policy(const char *name);

/* |measured / published - 1| <= limit, else the test fails with both numbers; printed either
 * way. */
void expect_near(const char *what, double measured, double published, double limit);

/* Run one boot of the kernel through the engine; fails the test on an error. */
void run_engine(struct kernel_run *run);

/* Refaults of all measured windows together, and of the worst single one. */
void expect_refaults(const struct kernel_run *run, double together, double each);
/* The same from window `first` on (0 is the warm-up). */
void expect_refaults_from(const struct kernel_run *run, size_t first, double together, double each);

#endif
