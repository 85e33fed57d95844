/* SPDX-License-Identifier: MIT
 *
 * Which pages of a file are dirty, and which are being written: a hash table of groups of 64
 * neighbours with two bitmaps each, linked by age. A page can be both: it was written to while it
 * was being written. Everything here under node->lock.
 *
 * The pool's own mark (FOLIAGE_UNPIN_DIRTY) keeps the page in memory. It stands as long as the page
 * has either bit here.
 */
#include "cache/file.h"

#include <stdlib.h>

static uint32_t bucket(const struct file_node *n, uint64_t base)
{
	return (uint32_t)(base * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (n->nr_buckets - 1);
}

struct dirty_group *dirty_find(const struct file_node *n, uint64_t base)
{
	struct dirty_group *g = n->nr_buckets ? n->groups[bucket(n, base)] : NULL;

	while (g && g->base != base)
		g = g->chain;
	return g;
}

/* Room for one more group, two buckets a group if memory allows. */
static bool grow(struct file_node *n)
{
	uint32_t nr = n->nr_buckets ? 2 * n->nr_buckets : 8;
	struct dirty_group **groups;

	if (n->nr_groups < n->nr_buckets)
		return true;
	groups = calloc(nr, sizeof(struct dirty_group *));
	if (!groups)
		return n->nr_buckets;
	free(n->groups);
	n->groups = groups;
	n->nr_buckets = nr;
	for (struct dirty_group *g = n->oldest; g; g = g->next) {
		uint32_t b = bucket(n, g->base);

		g->chain = groups[b];
		groups[b] = g;
	}
	return true;
}

static struct dirty_group *add_group(struct file_node *n, uint64_t base)
{
	struct dirty_group *g = grow(n) ? calloc(1, sizeof(*g)) : NULL;
	uint32_t b;

	if (!g)
		return NULL;
	b = bucket(n, base);
	g->base = base;
	g->since_ms = io_now_ms();
	g->chain = n->groups[b];
	n->groups[b] = g;
	g->prev = n->newest;
	if (n->newest)
		n->newest->next = g;
	else
		n->oldest = g;
	n->newest = g;
	n->nr_groups++;
	return g;
}

static void remove_group(struct file_node *n, struct dirty_group *g)
{
	struct dirty_group **at = &n->groups[bucket(n, g->base)];

	while (*at != g)
		at = &(*at)->chain;
	*at = g->chain;
	if (g->prev)
		g->prev->next = g->next;
	else
		n->oldest = g->next;
	if (g->next)
		g->next->prev = g->prev;
	else
		n->newest = g->prev;
	n->nr_groups--;
	free(g);
}

/* The cache's list has the nodes that have dirty pages, those that became so first in front. */
static void settle_list(struct file_node *n)
{
	struct foliage_cache *c = n->cache;
	bool want = atomic_load_explicit(&n->nr_dirty, memory_order_relaxed) > 0;

	if (want == __atomic_load_n(&n->listed, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&c->dirty_lock);
	if (want) {
		n->dirty_next = NULL;
		n->dirty_prev = c->dirty_last;
		if (c->dirty_last)
			c->dirty_last->dirty_next = n;
		else
			c->dirty_first = n;
		c->dirty_last = n;
	} else {
		if (n->dirty_prev)
			n->dirty_prev->dirty_next = n->dirty_next;
		else
			c->dirty_first = n->dirty_next;
		if (n->dirty_next)
			n->dirty_next->dirty_prev = n->dirty_prev;
		else
			c->dirty_last = n->dirty_prev;
	}
	__atomic_store_n(&n->listed, want, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&c->dirty_lock);
}

static void count(struct file_node *n, int64_t dirty, int64_t writeback)
{
	atomic_fetch_add_explicit(&n->nr_dirty, (uint64_t)dirty, memory_order_relaxed);
	atomic_fetch_add_explicit(&n->cache->nr_dirty, (uint64_t)dirty, memory_order_relaxed);
	if (writeback) {
		atomic_fetch_add_explicit(&n->nr_writeback, (uint64_t)writeback,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&n->cache->nr_writeback, (uint64_t)writeback,
					  memory_order_relaxed);
	}
}

bool dirty_mark(struct file_node *n, uint64_t page)
{
	struct dirty_group *g = dirty_find(n, page / GROUP_PAGES);
	uint64_t bit = UINT64_C(1) << page % GROUP_PAGES;

	if (!g)
		g = add_group(n, page / GROUP_PAGES);
	if (!g)
		return false;
	if (g->dirty & bit)
		return true;
	if (!g->dirty)
		g->since_ms = io_now_ms();
	g->dirty |= bit;
	count(n, 1, 0);
	settle_list(n);
	return true;
}

bool dirty_test(const struct file_node *n, uint64_t page)
{
	const struct dirty_group *g = dirty_find(n, page / GROUP_PAGES);

	return g && (g->dirty | g->writeback) >> page % GROUP_PAGES & 1;
}

void dirty_group_settle(struct file_node *n, struct dirty_group *g)
{
	if (!(g->dirty | g->writeback))
		remove_group(n, g);
	settle_list(n);
}

/* Bits of pages first .. last in a group. */
static uint64_t bits_between(uint64_t base, uint64_t first, uint64_t last)
{
	uint64_t start = base * GROUP_PAGES, bits = ~UINT64_C(0);

	if (last < start || first > start + (GROUP_PAGES - 1))
		return 0;
	if (first > start)
		bits &= ~UINT64_C(0) << (first - start);
	if (last < start + (GROUP_PAGES - 1))
		bits &= ~UINT64_C(0) >> (start + (GROUP_PAGES - 1) - last);
	return bits;
}

void dirty_forget(struct file_node *n, uint64_t first, uint64_t last)
{
	struct dirty_group *next;

	for (struct dirty_group *g = n->oldest; g; g = next) {
		uint64_t bits = g->dirty & bits_between(g->base, first, last);

		next = g->next;
		g->dirty &= ~bits;
		count(n, -__builtin_popcountll(bits), 0);
		dirty_group_settle(n, g);
	}
}

void dirty_to_writeback(struct file_node *n, struct dirty_group *g, uint32_t bit, uint32_t nr)
{
	uint64_t bits = (nr == GROUP_PAGES ? ~UINT64_C(0) : (UINT64_C(1) << nr) - 1) << bit;

	g->dirty &= ~bits;
	g->writeback |= bits;
	count(n, -(int64_t)nr, nr);
}

void dirty_from_writeback(struct file_node *n, struct dirty_group *g, uint32_t bit, bool failed)
{
	uint64_t mask = UINT64_C(1) << bit;
	bool again = failed && !(g->dirty & mask);

	g->writeback &= ~mask;
	if (again)
		g->dirty |= mask;
	count(n, again, -1);
}

void dirty_fini(struct file_node *n)
{
	while (n->oldest)
		remove_group(n, n->oldest);
	free(n->groups);
}
