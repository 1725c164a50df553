#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "model/architecture.h"
#include "model/config.h"
#include "model/dialled_writer.h"
#include "model/safetensors_writer.h"

namespace foretoken {

// The config.json of a dialled checkpoint. What is special about its architecture is switched on
// in small: windows of kDialledWindow positions, layers without positions, partial rotation.
nlohmann::ordered_json dialled_config(const DialledShape& shape);

inline constexpr int32_t kDialledWindow = 40;

// Its tensors, under the names of the architecture. `config` is dialled_config, parsed.
std::vector<TensorToWrite> dialled_tensors(const DialledShape& shape, const ModelConfig& config,
                                           const DecoderTraits& traits);

}  // namespace foretoken
