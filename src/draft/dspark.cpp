#include "draft/dspark.h"

#include <string>

#include "draft/block_drafter.h"

namespace foretoken {

Status check_dspark_fields(const SpeculativeConfig& config) {
  const double least = method_field(config, kConfidenceField, 0);
  if (least >= 0 && least < 1) return {};
  return invalid_argument("speculative config: confidence_threshold is " + std::to_string(least) +
                          "; give a number from 0 to below 1, or leave it out");
}

}  // namespace foretoken
