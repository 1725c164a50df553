#include "convert/to_gguf.h"

#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

#include "base/check.h"
#include "convert/config_keys.h"
#include "convert/model_tensors.h"
#include "convert/tensor_rows.h"
#include "convert/tokenizer_keys.h"
#include "gguf/block_encode.h"
#include "gguf/gguf_writer.h"
#include "gguf/hf_names.h"
#include "model/files/checkpoint.h"
#include "model/registry.h"

namespace foretoken {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{2} << 20;
constexpr float kMostHalf = 65504;
constexpr uint32_t kQuantizationVersion = 2;  // of ggml's block layouts

// One file being written.
class Conversion {
 public:
  Conversion(const ModelConfig& config, const GgufArchitecture& architecture,
             const GgufRecipe& recipe, const ConvertOptions& options)
      : config_(config), architecture_(architecture), recipe_(recipe), options_(options) {}

  Status run(const GgufKeys& keys, const std::vector<ModelTensor>& tensors,
             const std::vector<const TensorView*>& views) {
    const std::vector<float> divisors = rope_divisors(config_.rope.full);
    FT_RETURN_IF_ERROR(list(tensors, divisors));
    FT_ASSIGN_OR_RETURN(writer_,
                        GgufWriter::create(options_.output, keys, entries_, options_.replaces));
    for (size_t i = 0; i < tensors.size(); ++i) {
      FT_RETURN_IF_ERROR(write(*views[i], entries_[i], tensors[i].turned_head_dim));
    }
    if (!divisors.empty()) FT_RETURN_IF_ERROR(writer_->append(std::as_bytes(std::span(divisors))));
    return writer_->finish();
  }
  int64_t num_bytes() const { return writer_->size(); }

 private:
  Status list(const std::vector<ModelTensor>& tensors, const std::vector<float>& divisors) {
    for (const ModelTensor& tensor : tensors) {
      const auto name = gguf_tensor_name(tensor.name);
      FT_CHECK_MSG(name.has_value(), tensor.name);
      const PlacedTensor placed{*name, tensor.shape, tensor.layer, tensor.is_output};
      FT_ASSIGN_OR_RETURN(const BlockType* type, type_of(recipe_, placed, config_.num_layers));
      entries_.push_back({*name, type, tensor.shape});
      total_ += entries_.back().num_bytes();
    }
    if (divisors.empty()) return {};
    FT_ASSIGN_OR_RETURN(const BlockType* type, type_of(recipe_, {}, 1));
    entries_.push_back({"rope_freqs.weight", type, {std::ssize(divisors)}});
    return {};
  }

  Status write(const TensorView& view, const GgufTensorEntry& entry, int32_t head_dim) {
    const TensorRows rows(view, architecture_.interleaves_heads ? head_dim : 0);
    const int64_t most = std::max<int64_t>(kElementsAtOnce / std::max<int64_t>(rows.cols(), 1), 1);
    for (int64_t first = 0; first < rows.rows(); first += most) {
      if (options_.is_cancelled()) return aborted("converting was cancelled");
      FT_RETURN_IF_ERROR(write_rows(rows, first, std::min(most, rows.rows() - first), *entry.type));
      if (options_.progress) options_.progress(done_, total_);
    }
    return {};
  }

  Status write_rows(const TensorRows& rows, int64_t first, int64_t count, const BlockType& type) {
    const BlockEncode encode = find_block_encode(type);
    const int64_t blocks_per_row = rows.cols() / type.elements;
    const bool wide = type.name == "F32" || type.name == "BF16";
    std::vector<std::byte> bytes(static_cast<size_t>(count * blocks_per_row * type.bytes));
    const Status encoded = for_slices(count, [&](int64_t begin, int64_t num) -> Status {
      std::vector<float> values(static_cast<size_t>(num * rows.cols()));
      std::vector<std::byte> scratch;
      FT_RETURN_IF_ERROR(
          rows.read(first + begin, num, wide ? FLT_MAX : kMostHalf, values.data(), scratch));
      encode(values.data(), num * blocks_per_row,
             bytes.data() + begin * blocks_per_row * type.bytes);
      return {};
    });
    FT_RETURN_IF_ERROR(encoded);
    done_ += std::ssize(bytes);
    return writer_->append(bytes);
  }

  const ModelConfig& config_;
  const GgufArchitecture& architecture_;
  const GgufRecipe& recipe_;
  const ConvertOptions& options_;
  std::vector<GgufTensorEntry> entries_;
  std::unique_ptr<GgufWriter> writer_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

std::string model_name(const ModelFiles& model) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(model.path(), ignored).filename().string();
}

}  // namespace

Result<int64_t> to_gguf(const ModelFiles& model, const GgufRecipe& recipe,
                        const ConvertOptions& options) {
  if (model.is_gguf()) {
    return invalid_argument(model.text() +
                            " is a GGUF file already; name the model's Hugging Face folder");
  }
  if (!is_gguf(options.output)) {
    return invalid_argument("'" + options.output +
                            "' does not end with .gguf, by which such files are known; name "
                            "another file");
  }
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(model, {}));
  const GgufArchitecture* architecture = gguf_architecture_for(config.architecture);
  if (architecture == nullptr) {
    return unsupported(model.text() + ": models of the architecture " + config.architecture +
                       " are not written as GGUF files; those that are: " + gguf_hf_classes());
  }
  GgufKeys keys;
  FT_RETURN_IF_ERROR(add_config_keys(config, *architecture, model.text(), keys));
  keys.add_text("general.name", model_name(model));
  keys.add_u32("general.file_type", recipe.file_type);
  keys.add_u32("general.quantization_version", kQuantizationVersion);
  FT_RETURN_IF_ERROR(add_tokenizer_keys(model, config.vocab_size, config.eos_token_ids, keys));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  const auto tensors = model_tensors(config, find_architecture(config.architecture)->decoder);
  FT_ASSIGN_OR_RETURN(const auto views, find_tensors(checkpoint, tensors));
  Conversion conversion(config, *architecture, recipe, options);
  FT_RETURN_IF_ERROR(conversion.run(keys, tensors, views));
  return conversion.num_bytes();
}

}  // namespace foretoken
