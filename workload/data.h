/* SPDX-License-Identifier: MIT
 *
 * The tables of data/ that are compiled in; cmake/data.cmake turns each file into one of these.
 */
#ifndef FOLIAGE_WORKLOAD_DATA_H
#define FOLIAGE_WORKLOAD_DATA_H

#include <stddef.h>

/* Zero-terminated. */
extern const char data_published[];    /* data/published.csv */
extern const char data_kernel_612[];   /* data/kernel-6.12.csv */
extern const char data_kernel_newer[]; /* data/kernel-newer.csv */

/* Recordings, packed. */
extern const unsigned char data_real_kbuild[]; /* data/real-kbuild.foliage.zst */
extern const size_t data_real_kbuild_bytes;
extern const unsigned char data_real_sqlite_grep[]; /* data/real-sqlite-grep.foliage.zst */
extern const size_t data_real_sqlite_grep_bytes;

#endif
