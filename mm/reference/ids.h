/* SPDX-License-Identifier: MIT
 *
 * Lists of page ids, the one data structure that all reference policies share.
 *
 * A policy of the reduced interface knows its ids beforehand, so a list needs no nodes of its own:
 * one table indexed by id holds the links, and a list is its two ends and a count. A page is on at
 * most one list of a table, and the node says on which (`where`, the list's tag; 0: on none), so a
 * lookup is one array access and the ghosts of ARC or 2Q are just another list.
 *
 * `struct ids` adds what every policy needs around its lists: the world it lives in, the counters
 * and the events. It is the first member of a policy's state, which makes ids_destroy() and
 * ids_stats() fit all.
 */
#ifndef FOLIAGE_MM_REFERENCE_IDS_H
#define FOLIAGE_MM_REFERENCE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "foliage/policy.h"

#define IDS_NONE UINT32_MAX

struct ids_node {
	uint32_t prev, next; /* towards head, towards tail; meaningful while `where` is not 0 */
	uint8_t where;       /* tag of the list that it is on */
	uint8_t bits;        /* the policy's own */
	uint16_t refs;       /* the policy's own */
};

struct ids_list {
	uint32_t head, tail, nr;
	uint8_t tag;
};

struct ids {
	struct ids_node *nodes;
	struct foliage_policy_env env;
	struct foliage_stats stats;
	uint64_t now; /* of the miss that is being served */
};

static inline struct ids_list ids_list(uint8_t tag)
{
	return (struct ids_list){.head = IDS_NONE, .tail = IDS_NONE, .tag = tag};
}

/* `percent` of the room, rounded down, but at least one page. */
static inline uint32_t ids_share(uint32_t room, double percent)
{
	uint32_t pages = (uint32_t)((double)room * percent / 100.0);

	return pages ? pages : 1;
}

static inline void ids_push_head(struct ids_node *nodes, struct ids_list *list, uint32_t id)
{
	nodes[id].prev = IDS_NONE;
	nodes[id].next = list->head;
	nodes[id].where = list->tag;
	if (list->head != IDS_NONE)
		nodes[list->head].prev = id;
	else
		list->tail = id;
	list->head = id;
	list->nr++;
}

static inline void ids_push_tail(struct ids_node *nodes, struct ids_list *list, uint32_t id)
{
	nodes[id].next = IDS_NONE;
	nodes[id].prev = list->tail;
	nodes[id].where = list->tag;
	if (list->tail != IDS_NONE)
		nodes[list->tail].next = id;
	else
		list->head = id;
	list->tail = id;
	list->nr++;
}

static inline void ids_remove(struct ids_node *nodes, struct ids_list *list, uint32_t id)
{
	uint32_t prev = nodes[id].prev, next = nodes[id].next;

	if (prev != IDS_NONE)
		nodes[prev].next = next;
	else
		list->head = next;
	if (next != IDS_NONE)
		nodes[next].prev = prev;
	else
		list->tail = prev;
	nodes[id].where = 0;
	list->nr--;
}

static inline void ids_to_head(struct ids_node *nodes, struct ids_list *list, uint32_t id)
{
	if (list->head == id)
		return;
	ids_remove(nodes, list, id);
	ids_push_head(nodes, list, id);
}

/* ---- a policy's state ---- */

/* A zeroed state of `size` bytes, whose first member is a struct ids, with its table; NULL: no
 * memory. */
void *ids_create(size_t size, const struct foliage_policy_env *env);
/* The `destroy` and `stats` of a policy that owns nothing but its struct ids. */
void ids_destroy(void *state);
void ids_stats(const void *state, struct foliage_stats *stats);

/* Take the victim `id` off `list`; it leaves the room. */
void ids_evict(struct ids *ids, struct ids_list *list, uint32_t id);
/* The accounting of it alone, for a policy that keeps its residents in something else than a list.
 */
void ids_evicted(struct ids *ids, uint32_t id, uint8_t from);
/* Say that `id` of list `from` was looked at as a victim and stays, or that it moved up to list
 * `to`. */
void ids_spared(struct ids *ids, uint32_t id, uint8_t from, enum foliage_event_why why);
void ids_promoted(struct ids *ids, uint32_t id, uint8_t from, uint8_t to);

#endif
