#pragma once
#include <string>

#include "base/result.h"
#include "model/config/config_fields.h"
#include "model/draft_head_config.h"

namespace foretoken {

// Fills in what a P-EAGLE head has beyond EAGLE-3: the id of its masks, under one of the names that
// published heads have for it in config.json (`fields`), or from peagle_config.json beside it,
// which SpecForge writes. InvalidArgument names the field that is missing or wrong.
Status read_peagle_fields(const std::string& folder, const ConfigFields& fields,
                          DraftHeadConfig* head);

}  // namespace foretoken
