#include "model/registry.h"

#include <new>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "compat/compat.h"
#include "device/device_traits.h"
#include "model/decoder.h"
#include "model/decoder_weights.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/quantization.h"
#include "model/files/forms/quantized_tensor.h"
#include "model/model_parts.h"
#include "model/weights/tensor_places.h"

namespace foretoken {
namespace {

// Whether a matrix is one that latent attention absorbs, or of grouped outputs (DeepSeek V4), which
// is always widened.
bool is_absorbed(const std::string& name) {
  return name.find("v_b_proj.") != std::string::npos ||
         name.find(".k_b_proj.") != std::string::npos || name.find(".wo_a.") != std::string::npos;
}

// What of a checkpoint a stage of a decoder keeps in device memory.
struct StoredTensors {
  const Device& device;
  const Checkpoint& checkpoint;
  const ModelConfig& config;  // of the whole model
  const DecoderTraits& traits;
  const LoadOptions& options;
  DecoderTraits::Place place = find_place(
      traits, [this](const std::string& name) { return checkpoint.tensors().contains(name); });

  int64_t matrices_saving() const;
  int64_t tables_saving() const;
  bool is_lent(const TensorView& embedding) const;
  int64_t table_bytes(const TensorView& tensor, int64_t count, bool is_kept) const;
};

// Bytes by which all ranks' parts of matrices are smaller than in the model's type.
int64_t StoredTensors::matrices_saving() const {
  const std::string head = output_matrix_name(config, traits, place);
  const auto counts = [&](const std::string& name) {
    const bool is_part = name.starts_with(place.body) || name == head;
    return is_part && stage_packs(options.stages, config, traits, name) && !is_absorbed(name) &&
           !is_looked_up(name, config, traits, place);
  };
  return WeightLoader::quantized_saving(device, checkpoint, config.dtype, options.rounding, counts);
}

// Whether look-ups read the embedding in the head.
bool StoredTensors::is_lent(const TensorView& embedding) const {
  const QuantForm* form = quantized_form(embedding, config.dtype);
  return form != nullptr && device_traits(device.type()).lends_rows && options.stages.is_last() &&
         head_has_embedding(config, options.sharding) &&
         device.keeps_quantized(*form, config.hidden_size, config.dtype);
}

// Of a table with so many elements; `is_kept`: it may stay quantised.
int64_t StoredTensors::table_bytes(const TensorView& tensor, int64_t count, bool is_kept) const {
  const int64_t cols = tensor.shape.back();
  if (is_kept && WeightLoader::keeps_table(device, tensor, cols, config.dtype)) {
    return count / cols * packed_row_bytes(*quantized_form(tensor), cols);
  }
  return count * static_cast<int64_t>(dtype_size(looked_up_dtype(tensor, config.dtype)));
}

// The same of tables that rows are looked up in, each of which is whole on a rank.
int64_t StoredTensors::tables_saving() const {
  if (!options.stages.is_first()) return 0;
  const std::string positions = place.body + std::string(traits.positions) + ".weight";
  int64_t saved = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const bool is_embedding = name == embedding_name(traits, place);
    if (!is_embedding && !is_looked_up(name, config, traits, place)) continue;
    const int64_t own = int64_t{config.own_ids()} * config.embedding_width();
    const int64_t count = is_embedding ? own : tensor->num_elements();
    const bool is_lent_by_head = is_embedding && is_lent(*tensor);
    const int64_t stored = is_lent_by_head ? 0 : table_bytes(*tensor, count, name != positions);
    saved += count * static_cast<int64_t>(dtype_size(config.dtype)) - stored;
  }
  return saved;
}

// Of what this rank keeps in device memory; exact where nothing is quantised.
Result<int64_t> bytes_to_load(const Device& device, const ModelConfig& config,
                              const DecoderTraits& traits, const Checkpoint* checkpoint,
                              const LoadOptions& options) {
  FT_ASSIGN_OR_RETURN(const ModelConfig part, shard_config(config, options.sharding));
  const Stages& stages = options.stages;
  const int64_t bytes = decoder_weight_bytes(part, traits, options.sharding, stages);
  if (checkpoint != nullptr) {
    const StoredTensors stored{device, *checkpoint, config, traits, options};
    const int64_t saving = stored.matrices_saving();
    const int64_t left = bytes - stored.tables_saving();
    if (!options.sharding.deals_experts()) return left - saving / options.sharding.size;
    const int64_t whole = decoder_weight_bytes(config, traits, {}, stages);
    return left - static_cast<int64_t>(double(saving) * double(bytes) / double(whole));
  }
  if (options.dummy_recipe == nullptr) return bytes;
  const auto element = static_cast<int64_t>(dtype_size(config.dtype));
  const int64_t table = stages.is_first() ? int64_t{part.own_ids()} * part.hidden_size : 0;
  return table * element + matrices_bytes(*options.dummy_recipe, bytes / element - table);
}

// Of random matrices of layers where config.json says that the model's are E4M3; null: plain, as
// those of other types are.
const QuantForm* random_layer_form(const ModelFiles& files, const LoadOptions& options) {
  static constexpr QuantForm kBlocks{8, GroupScale::kFloat, 128, CodeTable::kE4m3};
  const bool is_plain = options.load_format == LoadFormat::kDummy &&
                        options.dummy_recipe == nullptr &&
                        options.rounding == WeightRounding::kNone;
  if (!is_plain || files.is_gguf()) return nullptr;
  const Result<nlohmann::json> config = read_config_json(files);
  if (!config.ok()) return nullptr;
  const auto found = read_quantization(config.value(), files.text());
  if (!found.ok() || !found.value() || !found.value()->is_fp8) return nullptr;
  return found.value()->block_cols == kBlocks.group ? &kBlocks : &RoundedTensor::kRows;
}

// Says how many products have rounded rows; Unsupported: none.
Status report_rounded(const WeightLoader& loader, const Device& device, const ModelFiles& files) {
  FT_RETURN_IF_ERROR(compat({.opened = &device,
                             .files = files.text(),
                             .rounds_activations = true,
                             .num_fp8_matrices = loader.num_rounded()}));
  FT_LOG(info, "{}: rows are rounded to E4M3 before the products of {} FP8 matrices", files.text(),
         loader.num_rounded());
  return {};
}

Result<std::unique_ptr<Model>> load_from_files(Device& device, const ModelFiles& files,
                                               const LoadOptions& options) {
  FT_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(files, options.config));
  const Architecture* architecture = find_architecture(config.architecture);
  FT_CHECK(architecture != nullptr);
  // Before sizes, which no other number of ranks would help.
  FT_RETURN_IF_ERROR(check_division(config, options));

  LoadOptions complete = options;
  if (complete.attention == nullptr) {
    FT_ASSIGN_OR_RETURN(complete.attention, find_attention_backend("auto", device));
  }
  std::optional<Checkpoint> checkpoint;
  if (options.load_format == LoadFormat::kAuto) {
    FT_ASSIGN_OR_RETURN(checkpoint, Checkpoint::open(files));
  }
  FT_ASSIGN_OR_RETURN(complete.stages, divide_layers(config, options.stages));
  const Checkpoint* weights = checkpoint ? &*checkpoint : nullptr;
  FT_ASSIGN_OR_RETURN(const int64_t bytes,
                      bytes_to_load(device, config, architecture->decoder, weights, complete));
  FT_ASSIGN_OR_RETURN(auto loader, WeightLoader::create(device, weights, config.dtype, bytes,
                                                        options.progress, options.cancelled));
  loader->round_layers(options.rounding);
  if (options.round_activations) loader->round_activations(options.static_scales);
  if (options.dummy_recipe != nullptr) {
    loader->quantize_random(*options.dummy_recipe, config.num_layers);
  }
  loader->quantize_random_layers(random_layer_form(files, options));
  FT_ASSIGN_OR_RETURN(
      auto model, load_decoder(device, {files, config, architecture->decoder}, *loader, complete));
  FT_RETURN_IF_ERROR(loader->check_all_used(config.architecture));
  if (options.round_activations) {
    FT_RETURN_IF_ERROR(report_rounded(*loader, device, files));
  } else if (weights != nullptr && weights->rounds_activations()) {
    FT_LOG(
        info,
        "{}: activations are not rounded as quantization_config has it; products are at least as "
        "exact, and scales of activations are passed over",
        files.text());
  }
  if (const std::string widened = loader->widened(); !widened.empty()) {
    FT_LOG(info, "quantised matrices that are widened to {} on {}: {}", dtype_name(config.dtype),
           device.name(), widened);
  }
  return model;
}

}  // namespace

Result<int64_t> stored_weight_bytes(const Device& device, const ModelFiles& files,
                                    const ModelConfig& config, const DecoderTraits& traits) {
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(files));
  return bytes_to_load(device, config, traits, &checkpoint, {});
}

Result<std::unique_ptr<Model>> load_model(Device& device, const ModelFiles& files,
                                          const LoadOptions& options) {
  FT_CHECK(options.max_rows > 0 && options.max_logits_rows > 0);
  try {
    return load_from_files(device, files, options);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough host memory while loading " + files.text() +
                              "; close other programs or use a smaller model");
  }
}

}  // namespace foretoken
