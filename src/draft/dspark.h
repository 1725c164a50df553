#pragma once
#include <foretoken/config.h>

#include "base/result.h"

namespace foretoken {

// confidence_threshold must lie in [0, 1).
Status check_dspark_fields(const SpeculativeConfig& config);

}  // namespace foretoken
