#include "model/files/forms/quantization_compressed.h"

#include <algorithm>

namespace foretoken {
namespace {

using Json = nlohmann::json;
using Reader = QuantizationReader;

// Floats, or integers of a byte each, which those of four bits have too (W4A8).
void read_compressed_scaled(Reader& weights, bool is_float, Quantization* out) {
  const int64_t bits = weights.integer("num_bits", "", 8);
  const std::string strategy = weights.text("strategy", "tensor");
  weights.want(bits == 8 || bits == 4,
               std::string(is_float ? "floats" : "integers") + " of " + bits_text(bits));
  if (!is_float || bits != 8) out->is_fp8 = false;
  if (!is_float) out->is_float = false;
  weights.want(is_one_of(strategy, {"tensor", "channel", "block", "group", "tensor_group"}),
               "strategy " + strategy);
  Quantization block;
  read_block(weights, "block_structure", &block);
  const bool differs = out->block_rows > 0 && block.block_rows > 0 &&
                       (out->block_rows != block.block_rows || out->block_cols != block.block_cols);
  weights.want(!differs, "blocks of several sizes");
  if (block.block_rows > 0) {
    out->block_rows = block.block_rows;
    out->block_cols = block.block_cols;
  }
}

// Integers in words.
void read_compressed_packed(Reader& weights, Quantization* out) {
  const std::string strategy = weights.text("strategy", "group");
  weights.want(strategy == "group" || strategy == "channel", "strategy " + strategy);
  out->layout = PackLayout::kCompressed;
  out->bits = static_cast<int32_t>(weights.integer("num_bits", "", 4));
  out->group = strategy == "channel" ? -1 : weights.integer("group_size", "", -1);
  const Json* symmetric = weights.find("symmetric");
  const Json* order = weights.find("actorder");
  out->needs_zeros = symmetric != nullptr && *symmetric == false;
  out->needs_groups = order != nullptr && *order == "group" && out->group > 0;
  weights.want(out->bits == 2 || out->bits == 4 || out->bits == 8, bits_text(out->bits));
}

// One of config_groups. How activations are rounded is not looked at: they are not.
Status read_compressed_group(const Json& group, const std::string& all_format,
                             const std::string& where, Quantization* out) {
  Reader outer(group, where);
  const std::string format = outer.text("format", all_format.c_str());
  const Json* weights = outer.find("weights");
  // Of attention, whose rows alone are rounded.
  if (weights == nullptr && group.contains("weights")) {
    out->rounds_activations = true;
    return {};
  }
  outer.want(weights != nullptr && weights->is_object(), "config_groups without weights");
  outer.want(is_one_of(format, {"pack-quantized", "int-quantized", "float-quantized",
                                "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                "mxfp8-quantized", "mixed-precision", "marlin-24", "dense"}),
             "format '" + format + "'");
  if (outer.failed()) return outer.status();
  const bool rounds =
      outer.find("input_activations") != nullptr || outer.find("output_activations") != nullptr;
  if (rounds) out->rounds_activations = true;
  Reader inner(*weights, where);
  const std::string type = inner.text("type", "int");
  inner.want(type == "int" || type == "float", "weights of the type " + type);
  const bool packed = format == "pack-quantized" || format == "marlin-24" ||
                      (format == "mixed-precision" && type == "int");
  inner.want(type == "int" || format != "pack-quantized", "weights of the type " + type);
  if (packed) {
    out->is_fp8 = false;
    read_compressed_packed(inner, out);
  } else {
    read_compressed_scaled(inner, type == "float", out);
  }
  return inner.status();
}

// An object that may say that nothing more was done to the weights.
bool is_dense(const Json* object) {
  if (object == nullptr || object->empty()) return true;
  const auto format = object->find("format");
  return object->is_object() && format != object->end() && *format == "dense";
}

// Masks, whose matrices the checkpoint makes dense (model/files/containers/unpacked_tensor.h), or
// what was no more than measured.
bool has_read_sparsity(const Json* object) {
  if (is_dense(object)) return true;
  const auto format = object->find("format");
  return object->is_object() && format != object->end() &&
         (*format == "sparse-24-bitmask" || *format == "sparse-bitmask");
}

// Transforms of weights were done when they were saved.
bool turns_weights_alone(const Json* object) {
  if (object == nullptr || object->empty()) return true;
  const Json groups = object->is_object() ? object->value("config_groups", Json()) : Json();
  if (!groups.is_object()) return false;
  for (const Json& group : groups) {
    const Json all = group.is_object() ? group.value("apply", Json()) : Json();
    if (!all.is_array() || all.empty()) return false;
    for (const Json& one : all) {
      const Json location = one.is_object() ? one.value("location", Json()) : Json();
      if (location != "weight_input" && location != "weight_output") return false;
    }
  }
  return true;
}

}  // namespace

Status read_compressed(QuantizationReader& reader, const std::string& where, Quantization* out) {
  const std::string format = reader.text("format", "");
  const Json* groups = reader.find("config_groups");
  reader.want(groups != nullptr && groups->is_object() && !groups->empty() &&
                  std::all_of(groups->begin(), groups->end(),
                              [](const Json& group) { return group.is_object(); }),
              "format '" + format + "' and no config_groups");
  reader.want(has_read_sparsity(reader.find("sparsity_config")),
              "a sparsity_config of another format than sparse-24-bitmask and sparse-bitmask");
  reader.want_because(
      turns_weights_alone(reader.find("transform_config")), "a transform_config",
      "its matrices expect rows that Hadamard matrices turned while the model runs (QuIP, "
      "SpinQuant's R3 and R4), which is not done here; use a checkpoint whose transforms are all "
      "in "
      "its weights (weight_input, weight_output), the model as it was before, or a GGUF file");
  if (reader.failed()) return reader.status();
  set_scaled(out);
  out->is_fp8 = out->is_float = true;
  for (const Json& group : *groups) {
    FT_RETURN_IF_ERROR(read_compressed_group(group, format, where, out));
  }
  out->differs = groups->size() > 1;
  if (out->differs) out->needs_zeros = out->needs_groups = false;
  return {};
}

bool quantizes_weights(const QuantizationReader& reader) {
  const Json* groups = reader.find("config_groups");
  if (is_empty_field(groups)) return false;
  return !groups->is_object() || !std::ranges::all_of(*groups, [](const Json& group) {
    return group.is_object() && group.contains("weights") && group["weights"].is_null();
  });
}

bool leaves_weights_plain(QuantizationReader& reader) {
  return reader.text("format", "") == "dense" &&
         has_read_sparsity(reader.find("sparsity_config")) &&
         turns_weights_alone(reader.find("transform_config"));
}

}  // namespace foretoken
