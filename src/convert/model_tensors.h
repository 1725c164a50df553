#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/files/checkpoint.h"

namespace foretoken {

// A tensor of a decoder under its Hugging Face name.
struct ModelTensor {
  std::string name;
  std::vector<int64_t> shape;
  int32_t layer = -1;           // -1: of the whole model
  bool is_output = false;       // the output matrix, or the embedding where they are tied
  int32_t turned_head_dim = 0;  // query and key rows: of a head; else 0
  bool is_exact = false;        // as of TensorPart: a router
};

// All that a decoder consists of, in the order in which it uses them.
std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits);

// What a checkpoint's draft modules (MTP) consist of beside the decoder, all as of the whole model,
// so that it is copied: `ignored` are patterns of their names, as compressed-tensors writes them.
struct ModuleTensors {
  std::vector<ModelTensor> tensors;
  std::vector<std::string> ignored;
};
ModuleTensors module_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

// The tensors' views. NotFound or InvalidArgument when one is missing or has another shape or a
// type that is not read; InvalidArgument when the checkpoint holds something else.
Result<std::vector<const TensorView*>> find_tensors(const Checkpoint& checkpoint,
                                                    const std::vector<ModelTensor>& tensors);

}  // namespace foretoken
