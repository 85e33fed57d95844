/* SPDX-License-Identifier: MIT
 *
 * The policies: the table of the built-in ones, and policy texts. A text is a name or the path of a
 * shared object, then optionally a colon and knob settings: "fg", "fg:tail_mode=min,refs_max=15",
 * "./mine.so:depth=3". In a list the comma separates policies as well as settings; a part with an
 * `=` before any `:` or `/` continues the policy before it.
 */
#include "mm/policies.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/nearest.h"
#include "mm/engine_policies.h"
#include "mm/reference/reference.h"

const struct foliage_policy *const foliage_policies[] = {
	/* The engine's. */
	&foliage_policy_clru,
	&foliage_policy_mglru,
	&foliage_policy_mglru_revert,
	&foliage_policy_mglru_quickfix,
	&foliage_policy_mglru_oneline,
	&foliage_policy_mglru_credit,
	&foliage_policy_mglru_noio,
	&foliage_policy_fg,
	&foliage_policy_fgw,
	&foliage_policy_mglru_612,
	&foliage_policy_clru_612,

	/* The reference policies. */
	&foliage_policy_fifo,
	&foliage_policy_lru,
	&foliage_policy_clock,
	&foliage_policy_sieve,
	&foliage_policy_s3fifo,
	&foliage_policy_arc,
	&foliage_policy_twoq,
	&foliage_policy_slru,
	&foliage_policy_lirs,
	&foliage_policy_qdlp,
	&foliage_policy_lfu,
	&foliage_policy_wtinylfu,
	&foliage_policy_belady,
	&foliage_policy_static,
	NULL,
};

enum { KNOBS_SIZE_MAX = 1 << 16, KNOBS_MAX = 1024 };

const struct foliage_policy *policy_find(const char *name)
{
	for (size_t i = 0; foliage_policies[i]; i++)
		if (!strcmp(foliage_policies[i]->name, name))
			return foliage_policies[i];
	return NULL;
}

static int policy_unknown(const char *name, struct err *err)
{
	struct nearest nearest;

	nearest_start(&nearest, name);
	for (size_t i = 0; foliage_policies[i]; i++)
		nearest_try(&nearest, foliage_policies[i]->name);
	if (!nearest.best)
		return err_set(err, -ENOENT, "unknown policy '%.80s'", name);
	return err_set(err, -ENOENT, "unknown policy '%.80s'; did you mean '%s'?", name,
		       nearest.best);
}

/* ---- shared objects ---- */

static bool is_library(const char *name)
{
	size_t n = strlen(name);

	return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

/* NULL, or what is wrong with one knob of a loaded policy. */
static const char *knob_defect(const struct foliage_policy *policy, const struct foliage_knob *k)
{
	size_t size = k->kind == FOLIAGE_KNOB_DOUBLE ? sizeof(double) : sizeof(uint32_t);

	if (k->kind > FOLIAGE_KNOB_ENUM)
		return "a knob of unknown kind";
	if (k->offset > policy->knobs_size || policy->knobs_size - k->offset < size)
		return "a knob outside its knob structure";
	if (k->kind == FOLIAGE_KNOB_ENUM && !k->names)
		return "an enum knob without names";
	if (k->kind == FOLIAGE_KNOB_UINT && (k->min < 0 || k->max > UINT32_MAX))
		return "a whole-number knob with bounds beyond 32 bits";
	return NULL;
}

static const char *policy_defect(const struct foliage_policy *policy)
{
	const char *defect = NULL;
	size_t i;

	if (!policy->name || !*policy->name)
		return "no name";
	if (policy->engine)
		return "an engine policy, which cannot be loaded";
	if (!policy->create || !policy->destroy)
		return "no create or no destroy";
	if (!policy->access && !policy->run)
		return "neither access nor run";
	if (policy->knobs_size > KNOBS_SIZE_MAX)
		return "a knob structure beyond 64 KiB";
	for (i = 0; policy->knobs && policy->knobs[i].name && !defect; i++)
		defect = i < KNOBS_MAX ? knob_defect(policy, &policy->knobs[i]) : "too many knobs";
	return defect;
}

static int policy_load(const char *name, struct policy_choice *choice, struct err *err)
{
	const struct foliage_policy *policy;
	const char *defect;
	char *path = NULL;

	/* Without a slash dlopen would search the library path, which is not what a file name
	 * means. */
	if (asprintf(&path, "%s%s", strchr(name, '/') ? "" : "./", name) < 0)
		return err_set(err, -ENOMEM, "%.200s: out of memory", name);
	choice->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	free(path);
	if (!choice->library) {
		const char *why = dlerror();

		return err_set(err, -ELIBBAD, "%.200s: cannot be loaded: %.250s", name,
			       why ? why : "unknown reason");
	}
	policy = dlsym(choice->library, "foliage_policy");
	if (!policy)
		return err_set(err, -ELIBBAD, "%.200s: no policy: it exports no 'foliage_policy'",
			       name);
	if (policy->abi != FOLIAGE_POLICY_ABI)
		return err_set(err, -ELIBBAD, "%.200s: policy of interface %u, this is %d", name,
			       policy->abi, FOLIAGE_POLICY_ABI);
	defect = policy_defect(policy);
	if (defect)
		return err_set(err, -ELIBBAD, "%.200s: bad policy: %s", name, defect);
	choice->policy = policy;
	return 0;
}

/* ---- texts ---- */

static int choice_knobs(struct policy_choice *choice, const char *settings, struct err *err)
{
	const struct foliage_policy *policy = choice->policy;

	/* A policy without a knob structure still gets memory, so that settings for it meet one
	 * error path. */
	choice->knobs = calloc(1, MAX(policy->knobs_size, sizeof(double)));
	if (!choice->knobs)
		return err_set(err, -ENOMEM, "policy %s: out of memory", policy->name);
	policy_knobs_default(policy, choice->knobs);
	return settings ? policy_knobs_parse(policy, choice->knobs, settings, err) : 0;
}

int policy_parse(const char *text, struct policy_choice *choice, struct err *err)
{
	char *name = strdup(text), *colon;
	int ret = 0;

	memset(choice, 0, sizeof(*choice));
	if (!name)
		return err_set(err, -ENOMEM, "policy '%.80s': out of memory", text);
	colon = strchr(name, ':');
	if (colon)
		*colon = '\0';
	snprintf(choice->label, sizeof(choice->label), "%s", text);
	if (!*name)
		ret = err_set(err, -EINVAL, "empty policy name in '%.80s'", text);
	else if (is_library(name))
		ret = policy_load(name, choice, err);
	else if (!(choice->policy = policy_find(name)))
		ret = policy_unknown(name, err);
	if (!ret)
		ret = choice_knobs(choice, colon ? colon + 1 : NULL, err);
	if (ret)
		policy_choice_free(choice);
	free(name);
	return ret;
}

void policy_choice_free(struct policy_choice *choice)
{
	free(choice->knobs);
	if (choice->library)
		dlclose(choice->library);
	memset(choice, 0, sizeof(*choice));
}

/* ---- lists ---- */

struct choices {
	struct policy_choice *all;
	size_t nr, max;
};

static int choices_add(struct choices *c, const char *text, struct err *err)
{
	int ret;

	if (c->nr == c->max) {
		size_t max = c->max ? 2 * c->max : 8;
		struct policy_choice *all = reallocarray(c->all, max, sizeof(*all));

		if (!all)
			return err_set(err, -ENOMEM, "list of policies: out of memory");
		c->all = all;
		c->max = max;
	}
	ret = policy_parse(text, &c->all[c->nr], err);
	if (!ret)
		c->nr++;
	return ret;
}

static int choices_add_all(struct choices *c, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; foliage_policies[i] && !ret; i++)
		ret = choices_add(c, foliage_policies[i]->name, err);
	return ret;
}

/* Is this part of a list a setting of the policy before it? */
static bool is_setting(const char *part)
{
	return part[strcspn(part, ":/=,")] == '=';
}

/* The comma that ends the policy text at `text`, or its end. */
static char *policy_text_end(char *text)
{
	bool takes_settings = text[strcspn(text, ":,")] == ':';
	char *end = text + strcspn(text, ",");

	while (*end && takes_settings && is_setting(end + 1))
		end += 1 + strcspn(end + 1, ",");
	return end;
}

/* `text` is written to; `whole` is the list as the user wrote it. */
static int choices_parse(struct choices *c, char *text, const char *whole, struct err *err)
{
	for (;;) {
		char *end = policy_text_end(text);
		bool last = !*end;
		int ret;

		*end = '\0';
		if (!*text)
			return err_set(err, -EINVAL, "empty policy name in '%.80s'", whole);
		if (is_setting(text))
			return err_set(err, -EINVAL,
				       "'%.80s' sets a knob of no policy; settings follow as "
				       "policy:knob=value",
				       text);
		ret = strcmp(text, "all") ? choices_add(c, text, err) : choices_add_all(c, err);
		if (ret || last)
			return ret;
		text = end + 1;
	}
}

int policy_parse_list(const char *text, struct policy_choice **choices, size_t *nr, struct err *err)
{
	struct choices c = {0};
	char *copy = strdup(text);
	int ret;

	*choices = NULL;
	*nr = 0;
	if (!copy)
		return err_set(err, -ENOMEM, "list of policies: out of memory");
	ret = choices_parse(&c, copy, text, err);
	free(copy);
	if (ret) {
		while (c.nr)
			policy_choice_free(&c.all[--c.nr]);
		free(c.all);
		return ret;
	}
	*choices = c.all;
	*nr = c.nr;
	return 0;
}
