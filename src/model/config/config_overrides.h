#pragma once
#include <nlohmann/json.hpp>

namespace foretoken {

// A config.json with a JSON object laid over it, also inside objects, as --hf-overrides does. A
// field that stands above the decoder's own is laid over those too where text_config has it or
// nothing else does: rope_theta over rope_parameters, a rope_scaling of null takes the scaling out
// of them, and rope_parameters stand in place of a rope_scaling.
nlohmann::json with_overrides(const nlohmann::json& file, const nlohmann::json& overrides);

}  // namespace foretoken
