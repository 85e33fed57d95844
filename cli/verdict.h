/* SPDX-License-Identifier: MIT
 *
 * The closing table of a bench: suites by policies, better or worse than mglru.
 */
#ifndef FOLIAGE_CLI_VERDICT_H
#define FOLIAGE_CLI_VERDICT_H

#include <stdio.h>

#include "workload/suite.h"

/* Print it when at least one suite ran mglru and another policy; else nothing. */
int verdict_print(const struct suite_report *report, FILE *out);

#endif
