/* SPDX-License-Identifier: MIT
 *
 * See scene.h.
 */
#include "workload/scene.h"

int scene_run(struct machine *m, const struct grid_run *run, struct err *err)
{
	int r = machine_run(m, 0, run->stopped);

	return r && machine_oom(m)[0] ? err_set(err, r, "%s", machine_oom(m)) : r;
}
