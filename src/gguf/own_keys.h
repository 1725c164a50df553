#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "gguf/container/gguf_file.h"

namespace foretoken {

// Fields of config.json that a file of one architecture says otherwise than by a key for each:
// GgufArchitecture::read. Errors name the file and the key.

// Which generation of Falcon it is, by its key heads and norms.
Status read_falcon_file(const GgufFile& file, nlohmann::json& config);

// Gemma 3n: what the shapes of tensors say, the layers that share keys and values, and how sparse
// which MLPs are.
Status read_gemma3n_file(const GgufFile& file, nlohmann::json& config);

// Gemma 4: heads of layers with and without a window, wider MLPs, how much of a head turns, the
// layers that share keys and values, experts.
Status read_gemma4_file(const GgufFile& file, nlohmann::json& config);

// Layers of DeciLM, some without attention or without an MLP: block_configs.
Status read_deci_file(const GgufFile& file, nlohmann::json& config);

// Laguna: numbers of heads by layer, whether each element has a gate, dense layers in front, every
// which layer has no window, and how layers of both kinds turn.
Status read_laguna_file(const GgufFile& file, nlohmann::json& config);

// Step 3.5: heads of layers with and without a window, which layers have experts, limits of gates
// and ups, how much of a head turns, and how many layers behind the model's are MTP modules.
Status read_step35_file(const GgufFile& file, nlohmann::json& config);

// Spark X2.5: how layers with a window and others turn.
Status read_spark_file(const GgufFile& file, nlohmann::json& config);

// MiMo V2: what layers with and without a window have, and which of them have experts; layers of
// MTP modules, behind the model's, do not count.
Status read_mimo2_file(const GgufFile& file, nlohmann::json& config);

// The layers with a window, where a file lists them by true and false or 1 and 0: `layer_types`.
void read_layer_types(const GgufFile& file, const std::string& architecture,
                      nlohmann::json& config);

}  // namespace foretoken
