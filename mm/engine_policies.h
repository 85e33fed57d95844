/* SPDX-License-Identifier: MIT */
#ifndef FOLIAGE_MM_ENGINE_POLICIES_H
#define FOLIAGE_MM_ENGINE_POLICIES_H

#include "foliage/policy.h"

extern const struct foliage_policy foliage_policy_clru, foliage_policy_clru_612,
	foliage_policy_mglru, foliage_policy_mglru_revert, foliage_policy_mglru_quickfix,
	foliage_policy_mglru_oneline, foliage_policy_mglru_credit, foliage_policy_mglru_noio,
	foliage_policy_mglru_612, foliage_policy_fg, foliage_policy_fgw;

#endif
