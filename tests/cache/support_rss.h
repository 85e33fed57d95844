/* SPDX-License-Identifier: MIT */
#ifndef FOLIAGE_TESTS_CACHE_SUPPORT_RSS_H
#define FOLIAGE_TESTS_CACHE_SUPPORT_RSS_H

#include <stdint.h>

/* Bytes of this process that are in memory. Fails the test when the system does not say. */
uint64_t rss_bytes(void);

#endif
