/* SPDX-License-Identifier: MIT
 *
 * Memory: large zeroed tables, lazily backed, in huge pages where the system gives them.
 */
#ifndef FOLIAGE_BASE_MEM_H
#define FOLIAGE_BASE_MEM_H

#include <stddef.h>

/* Reserve `bytes` of zeroed memory, not backed until touched. NULL when the address space is
 * refused. Tables of 2 MiB and more ask for huge pages: random walks over them otherwise pay a TLB
 * miss an access. */
void *mem_table(size_t bytes);
void mem_table_free(void *table, size_t bytes);

#endif
