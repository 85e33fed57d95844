/* SPDX-License-Identifier: MIT
 *
 * A suite made of a trace: what `foliage bench trace:FILE` runs.
 */
#ifndef FOLIAGE_WORKLOAD_SUITE_TRACE_H
#define FOLIAGE_WORKLOAD_SUITE_TRACE_H

#include "workload/suite.h"

/* The suite "trace:FILE", in memory of its own; the file is read when the suite is opened. NULL: no
 * memory. */
struct suite *suite_trace_create(const char *path);
void suite_trace_free(struct suite *suite); /* NULL is allowed */

#endif
