#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dialled/dialled_writer.h"
#include "dialled/safetensors_writer.h"
#include "model/config/architecture.h"
#include "model/config/config.h"

namespace foretoken {

// The config.json of a dialled checkpoint. What is special about its architecture is switched on
// in small: windows of kDialledWindow positions, layers without positions, partial rotation.
nlohmann::ordered_json dialled_config(const DialledShape& shape);

inline constexpr int32_t kDialledWindow = 40;

// Whether its layers, but for a dense one before them, are mixtures of experts.
bool is_dialled_mixture(const DialledShape& shape);

// Its tensors, under the names of the architecture. `config` is dialled_config, parsed.
std::vector<TensorToWrite> dialled_tensors(const DialledShape& shape, const ModelConfig& config,
                                           const DecoderTraits& traits);

// InvalidArgument names the size of a shape that does not work.
Status check_dialled_shape(const DialledShape& shape);

// Create the folder of a checkpoint, and a file in it. InvalidArgument where that fails.
Status make_dialled_folder(const std::string& folder);
Status write_dialled_json(const std::string& folder, const char* name,
                          const nlohmann::ordered_json& json);

}  // namespace foretoken
