/* SPDX-License-Identifier: MIT */
#ifndef FOLIAGE_MM_ENGINE_H
#define FOLIAGE_MM_ENGINE_H

#include "mm/policies.h"
#include "mm/types.h"

/* foliage_engine_create() with the policy already chosen; options->policy is not looked at. */
int engine_create(const struct foliage_engine_options *options, const struct policy_choice *choice,
		  struct foliage_engine **engine, char *message, size_t bytes);

/* A memcg comes or goes: its lruvecs' lists, walk state and policy state. */
int engine_init_lruvec(struct foliage_engine *e, uint32_t index);
void engine_fini_lruvec(struct foliage_engine *e, uint32_t index);

/* The folio is on no list: forget it, uncharge. Unless `force`, false when somebody pinned it
 * meanwhile, or made it dirty. */
bool engine_release_folio(struct foliage_engine *e, folio_id id, bool force);

/* foliage_folio_remove() of a folio that the caller has pinned and frozen, so that nobody else can
 * come to hold it; the pins stay in the word. -EBUSY while reclaim has the folio in its hands. */
int engine_remove_pinned(struct foliage_engine *e, struct foliage_cpu *cpu, folio_id id);

#endif
