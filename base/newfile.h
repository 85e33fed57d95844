/* SPDX-License-Identifier: MIT
 *
 * A file that is whole or not there: it grows under a temporary name in its own folder and gets its
 * name at the end, so that readers see the old content or the new, never a part.
 */
#ifndef FOLIAGE_BASE_NEWFILE_H
#define FOLIAGE_BASE_NEWFILE_H

#include <stdbool.h>

struct newfile {
	char *temporary; /* NULL: written in place */
};

/* A descriptor to write the file `path` to, which belongs to the caller, or a negative errno. What
 * is there already and is no regular file (a device, a pipe) is written in place, since it cannot be
 * renamed over; `in_place` asks for that. A file that is replaced gives its permissions. */
int newfile_open(struct newfile *file, const char *path, bool in_place);
/* Everything is written and the descriptor closed: the file gets its name. On failure nothing of it
 * stays. */
int newfile_commit(struct newfile *file, const char *path);
/* Nothing of it stays, but for what was written in place. */
void newfile_discard(struct newfile *file);

#endif
