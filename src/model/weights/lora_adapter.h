#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/dtype.h"
#include "model/config/peft_config.h"
#include "model/files/containers/safetensors.h"
#include "model/files/containers/torch_file.h"

namespace foretoken {

// What an adapter adds to one linear layer of a model, y += scale * b (a x), or to an embedding,
// whose inputs are its ids: x is a one at the id.
struct LoraLinear {
  std::string module;  // for example "model.layers.3.self_attn.q_proj"
  int32_t rank = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  float scale = 0;
  std::vector<std::byte> a;  // [rank, inputs] of the adapter's type
  std::vector<std::byte> b;  // [outputs, rank]
  // Of DoRA: the tensor of magnitudes in the file, which read_magnitudes (dora.h) reads, and what
  // outputs are multiplied by, what is added among them, but not their bias: [outputs]. Empty: by
  // one. The tensor is not packed.
  std::string magnitude = {};
  std::vector<float> factors = {};
};

// An embedding or output matrix that PEFT saved whole beside an adapter, as it does where it was
// trained (modules_to_save), where the adapter is of such a matrix, or where the vocabulary once
// had another size.
struct LoraBase {
  std::string tensor;       // its name in the file
  std::string name;         // without what PEFT puts around it: "lm_head.weight"
  bool was_trained = true;  // modules_to_save names it
  bool ties = false;        // an output matrix that is tied to it is the same matrix
};

// Rows of the model's embedding or output matrix that were trained (trainable_token_indices).
struct LoraTokens {
  std::string tensor;        // its name in the file: [ids, hidden]; empty: the file has none
  std::string module;        // "model.embed_tokens"
  std::vector<int32_t> ids;  // whose rows they are
};

// Such a matrix that is another than the model's.
struct WholeMatrix {
  std::string module;  // "lm_head"
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<std::byte> values;  // [rows, columns] of the adapter's type
};

// A low-rank adapter in host memory, whole.
struct LoraAdapter {
  DType dtype = DType::kF32;
  std::vector<LoraLinear> linears;
  std::vector<WholeMatrix> wholes;
  // Not applied: changed_bases (saved_bases.h) says which of them are another model's, and
  // read_wholes reads these.
  std::vector<LoraBase> bases;
  // Not applied: read_token_rows (saved_bases.h) reads these.
  std::vector<LoraTokens> tokens = {};
  // It acts on rows from where these ids stand last in a prompt, and not at all where they do not.
  // Empty: on all rows. Not packed.
  std::vector<int32_t> invocation = {};
  // The model's files have matrices as [inputs, outputs] (fan_in_fan_out). Not packed.
  bool transposed = false;
  // What adapter_config.json says of it. Not packed.
  std::optional<PeftConfig> config = {};

  int32_t max_rank() const;
};

// The matrices of a PEFT folder in either of its formats.
struct AdapterFile {
  std::string path;
  std::unique_ptr<SafetensorsFile> safetensors;
  std::unique_ptr<TorchFile> torch;

  const std::map<std::string, TensorView>& tensors() const {
    return safetensors != nullptr ? safetensors->tensors() : torch->tensors();
  }
};
// NotFound when there is none; Unsupported for an adapter of MLX.
Result<AdapterFile> open_peft_weights(const std::string& folder);

// Reads a PEFT folder: adapter_config.json and adapter_model.safetensors, or the adapter_model.bin
// of older exports, of which nothing is run. `dtype`: what matrices
// are converted to. NotFound when the folder or a file of it is missing; Unsupported names what
// cannot be applied; InvalidArgument a file, field or tensor at fault, or a rank above `max_rank`.
Result<LoraAdapter> read_peft_adapter(const std::string& folder, DType dtype, int32_t max_rank);

// Reads those matrices of a PEFT folder into `wholes` of its adapter, converted to its type. Errors
// name the tensor.
Status read_wholes(const std::string& folder, const std::vector<LoraBase>& bases,
                   LoraAdapter* adapter);

// One adapter as bytes and back, for other ranks.
std::vector<std::byte> pack_adapter(const LoraAdapter& adapter);
Result<LoraAdapter> unpack_adapter(const std::vector<std::byte>& packed);

}  // namespace foretoken
