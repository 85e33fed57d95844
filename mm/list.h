/* SPDX-License-Identifier: MIT
 *
 * Lists of folios by index. A head is an entry of the folio table at a negative index (mm/types.h
 * draws it): an empty list points to itself. All under the lruvec's lock.
 */
#ifndef FOLIAGE_MM_LIST_H
#define FOLIAGE_MM_LIST_H

#include "mm/folio.h"

static inline folio_id list_head(uint32_t lruvec, int list)
{
	return -1 - (folio_id)(lruvec * NR_LISTS) - list;
}

static inline void list_init(struct foliage_engine *e, folio_id head)
{
	struct folio *h = folio_at(e, head);

	h->prev = h->next = head;
}

static inline bool list_empty(const struct foliage_engine *e, folio_id head)
{
	return folio_at(e, head)->next == head;
}

static inline folio_id list_first(const struct foliage_engine *e, folio_id head)
{
	return folio_at(e, head)->next;
}

static inline folio_id list_last(const struct foliage_engine *e, folio_id head)
{
	return folio_at(e, head)->prev;
}

static inline void list_insert(struct foliage_engine *e, folio_id prev, folio_id next, folio_id id)
{
	struct folio *f = folio_at(e, id);

	f->prev = prev;
	f->next = next;
	folio_at(e, prev)->next = id;
	folio_at(e, next)->prev = id;
}

static inline void list_add(struct foliage_engine *e, folio_id head, folio_id id)
{
	list_insert(e, head, folio_at(e, head)->next, id);
}

static inline void list_add_tail(struct foliage_engine *e, folio_id head, folio_id id)
{
	list_insert(e, folio_at(e, head)->prev, head, id);
}

static inline void list_del(struct foliage_engine *e, folio_id id)
{
	struct folio *f = folio_at(e, id);

	folio_at(e, f->prev)->next = f->next;
	folio_at(e, f->next)->prev = f->prev;
}

/* Move all of `from` to the tail end of `to`, order kept; O(1). */
static inline void list_splice_tail(struct foliage_engine *e, folio_id from, folio_id to)
{
	struct folio *src = folio_at(e, from), *dst = folio_at(e, to);
	folio_id first = src->next, last = src->prev;

	if (first == from)
		return;
	folio_at(e, first)->prev = dst->prev;
	folio_at(e, dst->prev)->next = first;
	folio_at(e, last)->next = to;
	dst->prev = last;
	src->prev = src->next = from;
}

#endif
