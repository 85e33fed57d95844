/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: policy lists of any bytes. What parses must have a policy, sane knobs and a
 * label; what does not must say why. Texts with a slash or ".so" are left out: they would open
 * files.
 */
#include <stdlib.h>
#include <string.h>

#include "mm/policies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_knob(const struct foliage_knob *knob, const void *knobs)
{
	const char *field = (const char *)knobs + knob->offset;
	uint32_t integer;
	double value;

	if (knob->kind == FOLIAGE_KNOB_DOUBLE) {
		memcpy(&value, field, sizeof(value));
	} else {
		memcpy(&integer, field, sizeof(integer));
		value = integer;
	}
	if (knob->kind == FOLIAGE_KNOB_UINT || knob->kind == FOLIAGE_KNOB_DOUBLE) {
		if (!(value >= knob->min && value <= knob->max))
			abort();
	} else if (knob->kind == FOLIAGE_KNOB_BOOL && value > 1) {
		abort();
	} else if (knob->kind == FOLIAGE_KNOB_ENUM) {
		for (uint32_t i = 0; i <= integer; i++)
			if (!knob->names[i])
				abort();
	}
}

static void check_choice(const struct policy_choice *choice)
{
	if (!choice->policy || choice->library || !choice->label[0])
		abort();
	for (const struct foliage_knob *k = choice->policy->knobs; k && k->name; k++)
		check_knob(k, choice->knobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy_choice *choices;
	struct err err = {0};
	size_t nr;
	char *text = strndup((const char *)data, size);

	if (!text)
		return 0;
	if (!strchr(text, '/') && !strstr(text, ".so")) {
		int ret = policy_parse_list(text, &choices, &nr, &err);

		if (ret && (choices || nr || !err.text[0]))
			abort();
		for (size_t i = 0; i < nr; i++) {
			check_choice(&choices[i]);
			policy_choice_free(&choices[i]);
		}
		free(choices);
	}
	free(text);
	return 0;
}
