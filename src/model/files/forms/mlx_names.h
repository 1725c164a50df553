#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/files/containers/safetensors.h"
#include "model/files/forms/affine_tensor.h"

namespace foretoken {

// A matrix, or a stack of them, as MLX's tools save it: X.weight of U32 with X.scales and, in the
// mode "affine", X.biases (transformers' `metal`: X.qbiases).
struct MlxMatrix {
  std::string name;                // "X.weight"
  std::vector<std::string> names;  // of all its tensors
  AffineParts parts;               // biases: null in the modes of floats
  int64_t group = 0;               // of "affine": columns that share a scale
};

// Those of a checkpoint, in the groups that `quantization` of its config.json names for all of them
// or for one by its path. InvalidArgument where it names none; Unsupported for modes that are not
// read.
Result<std::vector<MlxMatrix>> find_mlx(const std::map<std::string, const TensorView*>& tensors,
                                        const nlohmann::json& quantization);

// What config.json says about how MLX quantised a model, or null.
const nlohmann::json* mlx_quantization(const nlohmann::json& config);

// The name of a tensor in a folder of transformers' where MLX's tools have another: stacked experts
// in `switch_mlp` or `switch_glu`; or in a GGUF file, where they divide kv_b_proj of latent
// attention as llama.cpp does, into the keys' part, turned, and that of the values.
std::string name_without_mlx(const std::string& name);

// Whether a folder was sanitised for MLX, which turns the kernels of convolutions: [channels, k, 1]
// in place of [channels, 1, k].
bool has_turned_convolutions(const std::map<std::string, const TensorView*>& tensors);

// Whether such a folder has 1 + w for a norm's w, as those of gated delta networks do.
bool is_whole_mlx_norm(const std::string& name);

// The codes or scales of a mode of floats as bytes, which have the order of compressed-tensors': of
// words of 32 bits, and of U8 with the name of the type that they are.
TensorView bytes_of_words(const TensorView& words);
TensorView with_type(const TensorView& bytes, const char* dtype_name);

}  // namespace foretoken
