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

// What the layers and the ends of a decoder consist of, in the order in which it uses them, under
// the names that the family has first.
std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits);
// The same under the names that this checkpoint has.
std::vector<ModelTensor> model_tensors(const ModelConfig& config, const DecoderTraits& traits,
                                       const Checkpoint& checkpoint);

// What a checkpoint's draft modules (MTP) consist of beside the decoder, all as of the whole model,
// so that it is copied: `ignored` are patterns of their names, as compressed-tensors writes them.
struct ModuleTensors {
  std::vector<ModelTensor> tensors;
  std::vector<std::string> ignored;
};
ModuleTensors module_tensors(const ModelConfig& config, const Checkpoint& checkpoint);
// Adds what else a checkpoint holds beside the layers, to be copied as well: tables of positions,
// norms of embeddings, parts that read images or sound.
void add_others(const DecoderTraits& traits, const Checkpoint& checkpoint,
                const std::vector<ModelTensor>& known, ModuleTensors* others);

// The tensors' views. NotFound or InvalidArgument when one is missing or has another shape or a
// type that is not read; InvalidArgument when the checkpoint holds something else.
Result<std::vector<const TensorView*>> find_tensors(const Checkpoint& checkpoint,
                                                    const std::vector<ModelTensor>& tensors);

}  // namespace foretoken
