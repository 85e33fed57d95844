/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdint.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

void *mem_table(size_t bytes)
{
	void *p;

	if (!bytes || bytes > SIZE_MAX / 4)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (bytes >= HUGE_PAGE)
		madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

void mem_table_free(void *table, size_t bytes)
{
	if (table)
		munmap(table, bytes);
}
