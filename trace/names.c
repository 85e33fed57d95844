/* SPDX-License-Identifier: MIT
 *
 * Numbers may be few and far apart (process numbers), so nothing here has a size that follows from
 * a number.
 */
#include "trace/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_text(const char *text, size_t length)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++)
		h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(h ^ h >> 29);
}

static uint32_t hash_number(uint32_t number)
{
	return (number * 0x9E3779B1u) >> 7;
}

/* The slot of a text (`text` not NULL) or number, or the free one where it belongs. */
static uint32_t *slot_find(const struct names *names, const char *text, size_t length,
			   uint32_t number)
{
	uint32_t mask = names->nr_slots - 1;
	uint32_t i = (text ? hash_text(text, length) : hash_number(number)) & mask;

	for (; names->slots[i]; i = (i + 1) & mask) {
		const struct name *name = &names->log[names->slots[i] - 1];

		if (text ? !strncmp(name->text, text, length) && !name->text[length]
			 : name->number == number)
			break;
	}
	return &names->slots[i];
}

static int grow_log(struct names *names)
{
	uint32_t room = names->room ? 2 * names->room : 16;
	struct name *log = realloc(names->log, room * sizeof(*log));

	if (!log)
		return -ENOMEM;
	names->log = log;
	names->room = room;
	return 0;
}

static int grow_slots(struct names *names)
{
	uint32_t nr_slots = names->nr_slots ? 2 * names->nr_slots : 64;
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(names->slots);
	names->slots = slots;
	names->nr_slots = nr_slots;
	/* In order, so that the latest name of a number stays. */
	for (uint32_t i = 0; i < names->nr; i++) {
		const char *text = names->by_text ? names->log[i].text : NULL;

		*slot_find(names, text, text ? strlen(text) : 0, names->log[i].number) = i + 1;
	}
	return 0;
}

static int make_room(struct names *names)
{
	int code = 0;

	if (names->nr >= NAMES_MAX - 1)
		return -E2BIG;
	if (names->nr == names->room)
		code = grow_log(names);
	if (!code && names->nr >= names->nr_slots / 2)
		code = grow_slots(names);
	return code;
}

static int append(struct names *names, uint32_t number, const char *text, size_t length,
		  uint32_t *slot)
{
	char *copy = strndup(text, length);

	if (!copy)
		return -ENOMEM;
	names->log[names->nr++] = (struct name){.number = number, .text = copy};
	*slot = names->nr;
	return 0;
}

int names_set(struct names *names, uint32_t number, const char *text, size_t length)
{
	int code = number < NAMES_MAX ? make_room(names) : -E2BIG;

	if (code)
		return code;
	return append(names, number, text, length, slot_find(names, NULL, 0, number));
}

int names_intern(struct names *names, const char *text, size_t length, uint32_t *number)
{
	uint32_t *slot;
	int code;

	names->by_text = true;
	code = make_room(names);
	if (code)
		return code;
	length = strnlen(text, length);
	slot = slot_find(names, text, length, 0);
	if (!*slot)
		code = append(names, names->nr + 1, text, length, slot);
	if (!code)
		*number = *slot;
	return code;
}

const char *names_get(const struct names *names, uint32_t number)
{
	uint32_t index;

	if (names->by_text)
		return number && number <= names->nr ? names->log[number - 1].text : NULL;
	if (!names->nr_slots)
		return NULL;
	index = *slot_find(names, NULL, 0, number);
	return index ? names->log[index - 1].text : NULL;
}

void names_free(struct names *names)
{
	for (uint32_t i = 0; i < names->nr; i++)
		free(names->log[i].text);
	free(names->log);
	free(names->slots);
	memset(names, 0, sizeof(*names));
}
