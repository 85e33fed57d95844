/* SPDX-License-Identifier: MIT
 *
 * The layout of a statistics segment, for its writer, its reader and their tests. Everything is a
 * 64-bit word or text of whole words, so that the file means the same to every program on the
 * machine.
 */
#ifndef FOLIAGE_CACHE_SEGMENT_H
#define FOLIAGE_CACHE_SEGMENT_H

#include <stdatomic.h>

#include "foliage/segment.h"

#define SEGMENT_MAGIC  UINT64_C(0x746e656d67657346) /* "Fsegment" on a little-endian machine */
#define SEGMENT_FOLDER "/dev/shm"
#define SEGMENT_PREFIX "foliage."

struct segment_layout {
	_Atomic uint64_t magic; /* written last: before that it is not a segment */
	uint64_t version, bytes, groups;
	uint64_t start_ticks; /* of the process, to know it from a later one of its number */
	struct foliage_segment_identity identity;
	_Atomic uint64_t stamp; /* odd while the values change */
	struct foliage_segment_values values;
};
_Static_assert(sizeof(struct foliage_segment_values) % sizeof(uint64_t) == 0,
	       "values are whole words");
_Static_assert(sizeof(struct segment_layout) % sizeof(uint64_t) == 0, "and so is the layout");

/* When the process started, in ticks since boot; 0: it is gone, or cannot be seen. */
uint64_t segment_start_ticks(uint64_t pid);

#endif
