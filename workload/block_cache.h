/* SPDX-License-Identifier: MIT
 *
 * A database's own cache of blocks, in private memory: least recently used first out. What it misses
 * goes to the file, and so to the page cache below it. Suites ycsb-b and mysql-like use it.
 */
#ifndef FOLIAGE_WORKLOAD_BLOCK_CACHE_H
#define FOLIAGE_WORKLOAD_BLOCK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct block_cache {
	uint32_t room, used, blocks; /* slots, slots in use, blocks that exist */
	int32_t *slot_of;            /* of each block, -1 */
	uint32_t *block_of, *newer, *older;
	bool *dirty; /* of each slot */
	uint32_t newest, oldest;
};

struct block_get {
	uint32_t slot;
	bool hit;
	bool evicted; /* another block left its slot for this one */
	bool write;   /* and was dirty */
	uint32_t victim;
};

/* -ENOMEM. */
int block_cache_init(struct block_cache *c, uint32_t room, uint32_t blocks);
void block_cache_free(struct block_cache *c);
/* The block is in the cache afterwards, and the newest. */
struct block_get block_cache_get(struct block_cache *c, uint32_t block, bool store);

#endif
