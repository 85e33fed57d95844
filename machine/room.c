/* SPDX-License-Identifier: MIT
 *
 * The room, for policies of the reduced interface; engine policies are handed on to
 * engine_room_ops. Policies with `access` only say hit or miss: the room counts, and knows a
 * refault by a bit for each page that was here.
 */
#include "machine/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"

struct room {
	const struct foliage_policy *policy;
	void *state;
	bool engine;
	struct foliage_policy_env env;
	uint64_t now;               /* accesses so far */
	uint64_t *seen;             /* by id, only for `access` */
	struct foliage_stats stats; /* what the room itself counts, since open */
	struct foliage_stats base;  /* all counters at the last reset */
};

static size_t room_seen_bytes(const struct room *room)
{
	return bitmap_words((size_t)room->env.nr_ids + 1) * sizeof(*room->seen);
}

static int room_check(const struct policy_choice *choice, const struct foliage_policy_env *env,
		      struct err *err)
{
	if (env->room < FOLIAGE_ROOM_MIN)
		return err_set(err, -EINVAL,
			       "policy %s: a room of %u pages is below the smallest, %d",
			       choice->label, env->room, FOLIAGE_ROOM_MIN);
	if ((choice->policy->flags & FOLIAGE_POLICY_OFFLINE) && !env->next && !env->counts)
		return err_set(err, -EINVAL, "policy %s: needs the whole trace beforehand",
			       choice->label);
	return 0;
}

static int room_open_reduced(struct room *room, const struct policy_choice *choice, struct err *err)
{
	int ret;

	if (!room->policy->run) {
		room->seen = mem_table(room_seen_bytes(room));
		if (!room->seen)
			return err_set(err, -ENOMEM, "policy %s: out of memory", choice->label);
	}
	ret = room->policy->create(&room->env, choice->knobs, &room->state);
	if (ret)
		return err_set(err, ret, "policy %s: %s", choice->label, strerror(-ret));
	return 0;
}

int room_open(const struct policy_choice *choice, const struct foliage_policy_env *env,
	      struct room **room, struct err *err)
{
	struct room *r;
	int ret = room_check(choice, env, err);

	if (ret)
		return ret;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(err, -ENOMEM, "policy %s: out of memory", choice->label);
	r->policy = choice->policy;
	r->engine = choice->policy->engine;
	r->env = *env;
	if (r->engine)
		ret = engine_room_ops.open(choice, &r->env, &r->state, err);
	else
		ret = room_open_reduced(r, choice, err);
	if (ret) {
		r->state = NULL;
		room_close(r);
		return ret;
	}
	*room = r;
	return 0;
}

void room_close(struct room *room)
{
	if (!room)
		return;
	if (room->state && room->engine)
		engine_room_ops.close(room->state);
	else if (room->state)
		room->policy->destroy(room->state);
	mem_table_free(room->seen, room_seen_bytes(room));
	free(room);
}

static void room_event(const struct room *room, uint32_t id, uint64_t now,
		       enum foliage_event_what what)
{
	const struct foliage_event event = {
		.access = now,
		.id = id,
		.what = (uint16_t)what,
		.why = what == FOLIAGE_EV_INSERT ? FOLIAGE_WHY_FIRST : FOLIAGE_WHY_NONE,
		.from = -1,
		.to = -1,
	};

	room->env.event(room->env.event_ctx, &event);
}

static void room_run_access(struct room *room, const uint32_t *ids, size_t n)
{
	bool (*access)(void *, uint32_t, uint64_t) = room->policy->access;
	uint64_t now = room->now, hits = 0, refaults = 0;
	bool tell = room->env.event;

	for (size_t i = 0; i < n; i++, now++) {
		enum foliage_event_what what = FOLIAGE_EV_ACCESS;

		if (access(room->state, ids[i], now)) {
			hits++;
		} else if (bit_test(room->seen, ids[i])) {
			refaults++;
			what = FOLIAGE_EV_REFAULT;
		} else {
			bit_set(room->seen, ids[i]);
			what = FOLIAGE_EV_INSERT;
		}
		if (tell)
			room_event(room, ids[i], now, what);
	}
	room->stats.accesses += n;
	room->stats.hits += hits;
	room->stats.misses += n - hits;
	room->stats.refaults += refaults;
}

int room_run(struct room *room, const uint32_t *ids, const uint8_t *ops, size_t n)
{
	int ret = 0;

	if (room->engine)
		ret = engine_room_ops.run(room->state, ids, ops, n, room->now);
	else if (room->policy->run)
		ret = room->policy->run(room->state, ids, ops, n, room->now);
	else
		room_run_access(room, ids, n);
	room->now += n;
	return ret;
}

/* All counters since the room was opened. */
static void room_stats_total(const struct room *room, struct foliage_stats *stats)
{
	*stats = room->stats;
	if (room->engine)
		engine_room_ops.stats(room->state, stats);
	else if (room->policy->stats)
		room->policy->stats(room->state, stats);
}

void room_stats(const struct room *room, struct foliage_stats *stats)
{
	room_stats_total(room, stats);
	stats->accesses -= room->base.accesses;
	stats->hits -= room->base.hits;
	stats->misses -= room->base.misses;
	stats->refaults -= room->base.refaults;
	stats->scanned -= room->base.scanned;
	stats->stolen -= room->base.stolen;
	stats->promoted -= room->base.promoted;
	stats->protected_ -= room->base.protected_;
	stats->agings -= room->base.agings;
}

void room_stats_reset(struct room *room)
{
	room_stats_total(room, &room->base);
}

int room_dump(const struct room *room, const char *what, char **text)
{
	*text = NULL;
	if (!room->engine)
		return -EOPNOTSUPP;
	return engine_room_ops.dump(room->state, what, text);
}

int room_ages(const struct room *room, struct engine_ages *ages)
{
	if (!room->engine)
		return -EOPNOTSUPP;
	engine_room_ops.ages(room->state, ages);
	return 0;
}
