/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include "workload/scenario.h"
int main(int argc, char **argv)
{
	struct scenario s; struct err err;
	if (argc == 4 && !strcmp(argv[1], "compile")) {
		if (scenario_compile(argv[2], &s, &err) || scenario_write(&s, argv[3], &err)) { fprintf(stderr, "%s\n", err.text); return 2; }
		printf("LRU=%s ZRAM=%s\n", s.lru, "");
		return 0;
	}
	return 2;
}
