/* SPDX-License-Identifier: MIT
 *
 * What a suite's orders of policies depend on: each free parameter halved and doubled.
 */
#ifndef FOLIAGE_CLI_SENSITIVITY_H
#define FOLIAGE_CLI_SENSITIVITY_H

#include <stdio.h>

#include "cli/bench_run.h"
#include "cli/table.h"

/* Runs every suite of the plan once as it is and twice for each of its free parameters; prints what
 * became of the orders. 0 or a negative errno, then with a message. */
int sensitivity_run(const struct bench_plan *plan, enum table_format format, FILE *out,
		    struct err *err);

#endif
