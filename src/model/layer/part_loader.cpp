#include "model/layer/part_loader.h"

#include "base/check.h"

namespace foretoken {

Status PartLoader::load_norm(const std::string& name, int32_t size, Norm* out) {
  out->kind = norms_.kind;
  if (!norms_.weighted) {
    const std::vector<float> ones(static_cast<size_t>(size), 1.0f);
    return upload(ones, "the weights of norms", &out->weight);
  }
  FT_RETURN_IF_ERROR(load_norm_weights({{name + ".weight", size}}, &out->weight));
  return norms_.bias ? load_vector({{name + ".bias", size}}, &out->bias) : Status();
}

Status PartLoader::load_norm_part(const std::string& name, int64_t size, const ShardRange& own,
                                  Norm* out) {
  FT_CHECK(norms_.kind == NormKind::kRms && !norms_.bias);
  if (!norms_.weighted) return load_norm(name, static_cast<int32_t>(own.count), out);
  out->kind = norms_.kind;
  return load_norm_weights({{name + ".weight", size, own.begin, own.count}}, &out->weight);
}

Status PartLoader::upload(const std::vector<float>& numbers, const char* what, const float** out) {
  FT_ASSIGN_OR_RETURN(void* memory,
                      loader_.upload(arena_, numbers.data(), numbers.size() * sizeof(float), what));
  *out = static_cast<const float*>(memory);
  return {};
}

Status PartLoader::load_norm_weights(const std::vector<TensorPart>& parts, const float** out) {
  FT_ASSIGN_OR_RETURN(*out, loader_.vector(arena_, parts, 1 - norms_.offset, norms_.offset));
  return {};
}

Status PartLoader::load_vector(const std::vector<TensorPart>& parts, const float** out) {
  FT_ASSIGN_OR_RETURN(*out, loader_.vector(arena_, parts, 0));
  return {};
}

Status PartLoader::load_conv(const std::string& name, const ColumnRange& channels, int64_t width,
                             const float** out) {
  TensorPart part{name + ".weight", channels.total * width, channels.first * width,
                  channels.count * width};
  part.row_size = width;
  part.stacked = channels.total;
  return load_vector({part}, out);
}

Status PartLoader::load_summed(const std::string& name, int64_t inputs, bool has_bias, Linear* out,
                               const PaddedHeads& padded) {
  const ShardRange own = shard_of(inputs, sharding_);
  TensorPart part{name, config_.hidden_size};
  part.padded = padded;
  return load_summed(part, {inputs, own.begin, own.count}, has_bias, out);
}

Status PartLoader::load_summed(const TensorPart& part, const ColumnRange& own, bool has_bias,
                               Linear* out) {
  if (has_bias && sharding_.rank > 0) loader_.ignore(part.name + ".bias");
  out->is_summed = sharding_.is_cut();
  return load_columns({part}, own, has_bias && sharding_.rank == 0, out, WeightOrder::kPlain);
}

void PartLoader::round_to_int8(Linear* out) {
  out->rounds_to_int8 = true;
  loader_.need_rounded(out->inputs);
}

Status PartLoader::load_columns(const std::vector<TensorPart>& parts, const ColumnRange& cols,
                                bool has_bias, Linear* out, WeightOrder order) {
  const auto named = [&](const char* ending) {
    std::vector<TensorPart> all = parts;
    for (TensorPart& part : all) part.name += ending;
    return all;
  };
  int64_t rows = 0;
  for (const TensorPart& part : parts) rows += part.wanted();
  out->outputs = static_cast<int32_t>(rows);
  out->inputs = static_cast<int32_t>(cols.count);
  out->source = {parts, cols, order};
  FT_ASSIGN_OR_RETURN(out->weight, loader_.matrix(named(".weight"), cols, order));
  if (config_.rounds_to_int8) round_to_int8(out);
  if (!has_bias) return {};
  FT_ASSIGN_OR_RETURN(out->bias, loader_.vector(arena_, named(".bias"), 0));
  return {};
}

}  // namespace foretoken
