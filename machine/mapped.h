/* SPDX-License-Identifier: MIT
 *
 * The page tables of a replay with --mapped: one process that maps the whole trace as one file. An
 * access sets the young bit of its page (and the dirty bit, on a store) and nothing else; reclaim
 * finds out by walking, by looking around, or when it is about to evict.
 *
 * A page's place in the address space is its rank (`order`), so that neighbours in the trace's
 * numbering share page tables. 4.3 bytes a page besides the caller's order.
 */
#ifndef FOLIAGE_MACHINE_MAPPED_H
#define FOLIAGE_MACHINE_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "foliage/reclaim.h"

struct mapped_space;

struct mapped_options {
	uint32_t nr_ids;
	const uint32_t *order; /* rank of each id, a permutation, kept by the caller; NULL: ids are
				  their own rank */
	uint32_t fault_around; /* pages that a fault maps around itself if they are present; 0 or 1:
				  only its own */
	bool born_old; /* fault-around entries start old (arm64 with hardware AF), else young (x86)
			*/
};

/* Page id is folio id of the engine. -EINVAL: `order` is no permutation. */
int mapped_create(const struct mapped_options *options, struct mapped_space **space);
void mapped_destroy(struct mapped_space *space);
/* The process of this space joins a memcg of the engine: returns its mm number or a negative errno.
 */
int mapped_attach(struct mapped_space *space, struct foliage_engine *engine, uint32_t memcg);

/* An access through the page tables. False: not mapped, a fault is due (bring the page in, then
 * mapped_map()). */
bool mapped_touch(struct mapped_space *space, uint32_t id, bool store, bool exec);
/* The fault on a present page: map it, young, and its present neighbours with it. Returns entries
 * made. */
uint32_t mapped_map(struct mapped_space *space, uint32_t id, bool store, bool exec);
/* Take the page out of the page tables; its dirty bit becomes the folio's. */
void mapped_unmap(struct mapped_space *space, uint32_t id);
bool mapped_is_mapped(const struct mapped_space *space, uint32_t id);

/* The answers of a struct foliage_backend. Its ctx is the machine's own, so these take the space.
 */
bool mapped_rmap(const struct mapped_space *space, foliage_folio folio, uint32_t cursor,
		 struct foliage_mapping *out);
bool mapped_next(const struct mapped_space *space, uint64_t from, struct foliage_mapping *out);

#endif
