/* SPDX-License-Identifier: MIT
 *
 * The tree of groups, and pools inside them. The engine has the tree as memcgs; this is who may name
 * them. A removed group stays in memory, standing for its parent, until nobody holds it: its number
 * in the engine may be another's by then.
 */
#include "cache/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PLACE_TRIES = 64 };

static struct foliage_group *group_new(struct pool *p, struct foliage_group *parent, uint32_t memcg)
{
	struct foliage_group *g =
		aligned_alloc(POOL_LINE, (sizeof(*g) + POOL_LINE - 1) / POOL_LINE * POOL_LINE);

	if (!g)
		return NULL;
	*g = (struct foliage_group){.pool = p, .parent = parent, .memcg = memcg, .refs = 1};
	group_pressure_init(g);
	return g;
}

static void group_free(struct foliage_group *g)
{
	group_pressure_fini(g);
	free(g);
}

int group_init(struct pool *p)
{
	p->root = p->self.group = group_new(p, NULL, 0);
	return p->root ? 0 : -ENOMEM;
}

void group_fini(struct pool *p)
{
	while (p->root) {
		struct foliage_group *g = p->root;

		p->root = g->next;
		group_free(g);
	}
	for (int i = 1; i < POOL_SPACES; i++)
		free(p->spaces[i]);
}

static void hold(struct foliage_group *g)
{
	atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
}

/* The root is first of the list and never goes. */
void group_release(struct foliage_group *g)
{
	struct pool *p = g->pool;

	while (g && atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) == 1) {
		struct foliage_group *parent = g->parent, **link;

		pthread_mutex_lock(&p->groups_lock);
		for (link = &p->root; *link != g; link = &(*link)->next)
			;
		*link = g->next;
		pthread_mutex_unlock(&p->groups_lock);
		group_free(g);
		g = parent;
	}
}

struct foliage_group *foliage_pool_group(struct foliage_pool *h)
{
	return h->group;
}

void foliage_group_hold(struct foliage_group *g)
{
	hold(g);
}

void foliage_group_release(struct foliage_group *g)
{
	if (g && pool_alive(g->pool))
		group_release(g);
}

/* ---- create and remove ---- */

/* When places run out: pages that nobody has moved still name memcgs that were removed, and whoever
 * reclaims just now may be looking at one. */
static int create_memcg(struct foliage_engine *e, uint32_t parent, const char *name)
{
	int memcg = foliage_memcg_create(e, parent, name);

	for (int i = 0; memcg == -ENOSPC && i < PLACE_TRIES; i++) {
		engine_drain_all(e);
		engine_adopt_all(e);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		memcg = foliage_memcg_create(e, parent, name);
	}
	return memcg;
}

static int create_locked(struct pool *p, struct foliage_group *parent, const char *name,
			 struct foliage_group **group)
{
	struct foliage_group *g;
	int memcg;

	if (parent->removed)
		return -ENOENT;
	if (p->nr_groups >= p->max_groups)
		return -ENOSPC;
	g = group_new(p, parent, 0);
	if (!g)
		return -ENOMEM;
	memcg = create_memcg(p->engine, parent->memcg, name);
	if (memcg < 0) {
		group_free(g);
		return memcg;
	}
	g->memcg = (uint32_t)memcg;
	g->next = p->root->next;
	p->root->next = g;
	p->nr_groups++;
	hold(parent);
	*group = g;
	return 0;
}

int foliage_group_create(struct foliage_group *parent, const char *name,
			 struct foliage_group **group)
{
	struct pool *p = parent->pool;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	pthread_mutex_lock(&p->groups_lock);
	rc = create_locked(p, parent, name, group);
	pthread_mutex_unlock(&p->groups_lock);
	return rc;
}

/* The memcg first: who names the group meanwhile is redirected by the engine (pool_add_folio()). */
static int remove_locked(struct foliage_group *g, struct pool_thread *t)
{
	int rc;

	if (!g->parent)
		return -EINVAL;
	if (g->removed)
		return -ENOENT;
	rc = foliage_memcg_remove(g->pool->engine, &t->cpu, g->memcg);
	if (rc)
		return rc;
	atomic_store_explicit(&g->removed, true, memory_order_release);
	g->pool->nr_groups--;
	return 0;
}

int foliage_group_remove(struct foliage_group *g)
{
	struct pool *p = g->pool;
	struct pool_thread *t;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	t = pool_thread(p);
	if (!t)
		return -ENOMEM;
	pthread_mutex_lock(&p->groups_lock);
	rc = remove_locked(g, t);
	pthread_mutex_unlock(&p->groups_lock);
	if (!rc)
		group_release(g);
	return rc;
}

/* ---- pools in groups ---- */

static int pool_locked(struct foliage_group *g, struct foliage_pool *h)
{
	struct pool *p = g->pool;

	if (g->removed)
		return -ENOENT;
	for (uint32_t i = 1; i < POOL_SPACES; i++) {
		if (p->spaces[i])
			continue;
		h->space = i;
		h->salt = pool_salt(i);
		p->spaces[i] = h;
		hold(g);
		return 0;
	}
	return -ENOSPC;
}

int foliage_group_pool(struct foliage_group *g, const struct foliage_pool_options *o,
		       struct foliage_pool **pool)
{
	struct pool *p = g->pool;
	struct foliage_pool *h;
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->core = p;
	h->alive = p->alive;
	h->group = g;
	h->users = 1;
	if (o) {
		h->wait_ms = o->wait_ms;
		h->dropped = o->dropped;
		h->ctx = o->ctx;
	}
	pthread_mutex_lock(&p->groups_lock);
	rc = pool_locked(g, h);
	pthread_mutex_unlock(&p->groups_lock);
	if (rc)
		free(h);
	else
		*pool = h;
	return rc;
}

/* ---- walking ---- */

enum { PATH_BYTES = 4096 };

static int each(struct foliage_group *g, char *path, size_t used,
		int (*visit)(void *ctx, struct foliage_group *group, const char *path), void *ctx)
{
	struct foliage_group *child;
	int rc = visit(ctx, g, used ? path : "/");

	for (child = g->pool->root; child && !rc; child = child->next) {
		int more;

		if (child->parent != g || child->removed)
			continue;
		more = snprintf(path + used, PATH_BYTES - used, "/%s",
				g->pool->engine->memcgs[child->memcg].name);
		if (more > 0 && (size_t)more < PATH_BYTES - used)
			rc = each(child, path, used + (size_t)more, visit, ctx);
		path[used] = '\0';
	}
	return rc;
}

/* "/a/b" of a group; how long it is, 0 for the root. */
static size_t path_of(const struct foliage_group *g, char *path)
{
	size_t used;
	int more;

	if (!g->parent)
		return 0;
	used = path_of(g->parent, path);
	more = snprintf(path + used, PATH_BYTES - used, "/%s",
			g->pool->engine->memcgs[g->memcg].name);
	return more > 0 && (size_t)more < PATH_BYTES - used ? used + (size_t)more : used;
}

int foliage_group_each(struct foliage_group *g,
		       int (*visit)(void *ctx, struct foliage_group *group, const char *path),
		       void *ctx)
{
	struct pool *p = g->pool;
	char path[PATH_BYTES] = "";
	int rc;

	if (!pool_alive(p))
		return -ECHILD;
	pthread_mutex_lock(&p->groups_lock);
	g = group_live(g);
	rc = each(g, path, path_of(g, path), visit, ctx);
	pthread_mutex_unlock(&p->groups_lock);
	return rc;
}
