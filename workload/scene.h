/* SPDX-License-Identifier: MIT
 *
 * What the suites on the simulated machine share: running one to its end, and numbers of a group.
 */
#ifndef FOLIAGE_WORKLOAD_SCENE_H
#define FOLIAGE_WORKLOAD_SCENE_H

#include "machine/machine.h"
#include "workload/grid.h"

/* Run until the last task has ended; a simulated out-of-memory becomes the message. */
int scene_run(struct machine *m, const struct grid_run *run, struct err *err);

#endif
