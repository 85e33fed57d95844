/* SPDX-License-Identifier: MIT
 *
 * See block_cache.h. Slots form a doubly linked list by number.
 */
#include "workload/block_cache.h"

#include <errno.h>
#include <stdlib.h>

int block_cache_init(struct block_cache *c, uint32_t room, uint32_t blocks)
{
	*c = (struct block_cache){.room = room, .blocks = blocks};
	c->slot_of = malloc(blocks * sizeof(*c->slot_of));
	c->block_of = malloc(room * sizeof(*c->block_of));
	c->newer = malloc(room * sizeof(*c->newer));
	c->older = malloc(room * sizeof(*c->older));
	c->dirty = calloc(room, sizeof(*c->dirty));
	if (!c->slot_of || !c->block_of || !c->newer || !c->older || !c->dirty)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++)
		c->slot_of[i] = -1;
	return 0;
}

void block_cache_free(struct block_cache *c)
{
	free(c->slot_of);
	free(c->block_of);
	free(c->newer);
	free(c->older);
	free(c->dirty);
}

static void unlink_slot(struct block_cache *c, uint32_t slot)
{
	if (slot == c->newest)
		c->newest = c->older[slot];
	else
		c->older[c->newer[slot]] = c->older[slot];
	if (slot == c->oldest)
		c->oldest = c->newer[slot];
	else
		c->newer[c->older[slot]] = c->newer[slot];
}

static void link_newest(struct block_cache *c, uint32_t slot, bool only)
{
	c->older[slot] = c->newest;
	if (only)
		c->oldest = slot;
	else
		c->newer[c->newest] = slot;
	c->newest = slot;
}

struct block_get block_cache_get(struct block_cache *c, uint32_t block, bool store)
{
	struct block_get get = {.hit = c->slot_of[block] >= 0};

	if (get.hit) {
		get.slot = (uint32_t)c->slot_of[block];
	} else if (c->used < c->room) {
		get.slot = c->used;
	} else {
		get.slot = c->oldest;
		get.evicted = true;
		get.victim = c->block_of[get.slot];
		get.write = c->dirty[get.slot];
		c->slot_of[get.victim] = -1;
		c->dirty[get.slot] = false;
	}
	if (get.hit || get.evicted) {
		if (c->room > 1)
			unlink_slot(c, get.slot);
		link_newest(c, get.slot, c->room == 1);
	} else {
		link_newest(c, get.slot, !c->used++);
	}
	c->block_of[get.slot] = block;
	c->slot_of[block] = (int32_t)get.slot;
	c->dirty[get.slot] |= store;
	return get;
}
