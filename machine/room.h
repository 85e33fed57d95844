/* SPDX-License-Identifier: MIT
 *
 * The room: the smallest machine. A fixed number of file pages, read one after another through one
 * policy. It is what `foliage replay` and the fio-read bench drive; engine policies and reduced
 * ones look the same from here.
 */
#ifndef FOLIAGE_MACHINE_ROOM_H
#define FOLIAGE_MACHINE_ROOM_H

#include "mm/ages.h"
#include "mm/policies.h"

struct room;

/* -EINVAL: room below FOLIAGE_ROOM_MIN or an offline policy without `next`; -ENOMEM. */
int room_open(const struct policy_choice *choice, const struct foliage_policy_env *env,
	      struct room **room, struct err *err);
void room_close(struct room *room);

/* Feed n accesses; `ops` (FOLIAGE_ACCESS_*) may be NULL. Calls continue one sequence. */
int room_run(struct room *room, const uint32_t *ids, const uint8_t *ops, size_t n);

/* Counters since the room was opened or last reset (a warm-up ends with a reset; pages stay). */
void room_stats(const struct room *room, struct foliage_stats *stats);
void room_stats_reset(struct room *room);

/* The engine's text of `what` ("lru_gen", "lru_gen_full", "memory.stat"), malloc'ed; NULL and
 * -EOPNOTSUPP for policies that have none. */
int room_dump(const struct room *room, const char *what, char **text);

/* Pages by age, for policies that have ages; -EOPNOTSUPP for the others. */
int room_ages(const struct room *room, struct engine_ages *ages);

/* What an engine-backed room must provide; machine/engine_room.c implements it for every engine
 * policy. */
struct room_ops {
	int (*open)(const struct policy_choice *choice, const struct foliage_policy_env *env,
		    void **state, struct err *err);
	void (*close)(void *state);
	int (*run)(void *state, const uint32_t *ids, const uint8_t *ops, size_t n, uint64_t now);
	void (*stats)(const void *state, struct foliage_stats *stats); /* all fields, since open */
	int (*dump)(const void *state, const char *what, char **text);
	void (*ages)(const void *state, struct engine_ages *ages);
};
extern const struct room_ops engine_room_ops;

#endif
