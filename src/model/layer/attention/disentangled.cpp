#include "model/layer/attention/disentangled.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/attention/attend_disentangled.h"

namespace foretoken {
namespace {

using Floats = std::vector<float>;

// Of all layers.
const std::string kTable = "model.rel_embeddings.weight";
const std::string kNorm = "model.rel_norm";

void norm_places(Floats* rows, const Floats& weight, const Floats& bias, float eps) {
  const size_t size = weight.size();
  for (float* row = rows->data(); row < rows->data() + rows->size(); row += size) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < size; ++i) sum += row[i];
    const double mean = sum / double(size);
    for (size_t i = 0; i < size; ++i) squares += (row[i] - mean) * (row[i] - mean);
    const double factor = 1 / std::sqrt(squares / double(size) + double(eps));
    for (size_t i = 0; i < size; ++i) {
      row[i] = static_cast<float>((row[i] - mean) * factor * weight[i] + bias[i]);
    }
  }
}

// The rows of all distances, an element of all of them side by side: [inputs, places].
Result<Floats> read_places(PartLoader& loader, const GqaSpec& whole) {
  const DistanceConfig& distances = whole.distances;
  WeightLoader& weights = loader.weights();
  FT_ASSIGN_OR_RETURN(Floats rows, weights.numbers(kTable));
  if (distances.normed) {
    FT_ASSIGN_OR_RETURN(const Floats weight, weights.numbers(kNorm + ".weight"));
    FT_ASSIGN_OR_RETURN(const Floats bias, weights.numbers(kNorm + ".bias"));
    norm_places(&rows, weight, bias, loader.config().rms_norm_eps);
  }
  const auto places = static_cast<size_t>(distances.places());
  const auto inputs = static_cast<size_t>(whole.inputs);
  Floats turned(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) turned[i % inputs * places + i / inputs] = rows[i];
  return turned;
}

// What the matrix `name` makes of them, of some heads: [heads, places, head_dim].
Result<Floats> multiply_places(PartLoader& loader, const Floats& turned, const std::string& name,
                               const GqaSpec& whole, const ShardRange& heads) {
  FT_ASSIGN_OR_RETURN(const Floats matrix, loader.weights().numbers(name + ".weight"));
  FT_ASSIGN_OR_RETURN(const Floats bias, loader.weights().numbers(name + ".bias"));
  const auto places = static_cast<size_t>(whole.distances.places());
  const auto inputs = static_cast<size_t>(whole.inputs), dim = static_cast<size_t>(whole.head_dim);
  const auto first = static_cast<size_t>(heads.begin) * dim;
  const auto count = static_cast<size_t>(heads.count) * dim;
  Floats out(count * places), line(places);
  for (size_t i = 0; i < count; ++i) {
    std::fill(line.begin(), line.end(), bias.at(first + i));
    const float* row = matrix.data() + (first + i) * inputs;
    for (size_t k = 0; k < inputs; ++k) {
      const float* column = turned.data() + k * places;
      for (size_t p = 0; p < places; ++p) line[p] += row[k] * column[p];
    }
    float* to = out.data() + i / dim * places * dim + i % dim;
    for (size_t p = 0; p < places; ++p) to[p * dim] = line[p];
  }
  return out;
}

// Wrong shapes and missing tensors are said before anything is read.
Status expect_places(PartLoader& loader, const std::string& base, const GqaSpec& whole) {
  const DistanceConfig& distances = whole.distances;
  const int64_t size = whole.q_size(), inputs = whole.inputs;
  const int64_t table[] = {distances.places(), inputs}, matrix[] = {size, inputs};
  WeightLoader& weights = loader.weights();
  FT_RETURN_IF_ERROR(weights.expect(kTable, table));
  for (const char* name : {"q_proj", "k_proj"}) {
    FT_RETURN_IF_ERROR(weights.expect(base + name + ".weight", matrix));
    FT_RETURN_IF_ERROR(weights.expect(base + name + ".bias", {&size, 1}));
  }
  if (!distances.normed) return {};
  FT_RETURN_IF_ERROR(weights.expect(kNorm + ".weight", {&inputs, 1}));
  return weights.expect(kNorm + ".bias", {&inputs, 1});
}

}  // namespace

int32_t place_of_distance(int32_t distance, const DistanceConfig& distances) {
  const int32_t middle = distances.buckets / 2, far = std::abs(distance);
  int32_t bucket = distance;
  if (middle > 0 && far > middle) {
    const float longest = std::log(static_cast<float>(double(distances.reach - 1) / middle));
    const float own = std::log(static_cast<float>(far) / static_cast<float>(middle));
    const auto more =
        static_cast<int32_t>(std::ceil(own / longest * static_cast<float>(middle - 1)));
    bucket = distance > 0 ? middle + more : -(middle + more);
  }
  const int32_t side = distances.places() / 2;
  return std::clamp(bucket + side, 0, 2 * side - 1);
}

Status Disentangled::load(PartLoader& loader, const std::string& base, const GqaSpec& whole) {
  distances = whole.distances;
  FT_RETURN_IF_ERROR(expect_places(loader, base, whole));
  std::vector<int32_t> listed;
  for (int32_t distance = -distances.reach; distance <= distances.reach; ++distance) {
    listed.push_back(place_of_distance(distance, distances));
  }
  constexpr const char* kWhat = "what scores get for distances";
  FT_ASSIGN_OR_RETURN(void* memory,
                      loader.weights().upload(loader.arena(), listed.data(),
                                              listed.size() * sizeof(int32_t), kWhat));
  places = static_cast<const int32_t*>(memory);
  const ShardRange heads = shard_of(whole.num_heads, loader.sharding());
  Floats of_keys(static_cast<size_t>(heads.count * distances.places() * whole.head_dim));
  Floats of_queries = of_keys;
  if (loader.weights().has_optional(kTable)) {
    FT_ASSIGN_OR_RETURN(const Floats turned, read_places(loader, whole));
    FT_ASSIGN_OR_RETURN(of_keys, multiply_places(loader, turned, base + "k_proj", whole, heads));
    FT_ASSIGN_OR_RETURN(of_queries, multiply_places(loader, turned, base + "q_proj", whole, heads));
  }
  FT_RETURN_IF_ERROR(loader.upload(of_keys, kWhat, &keys));
  return loader.upload(of_queries, kWhat, &queries);
}

void Disentangled::attend(const LayerRows& rows, const LayerKv& kv, const GqaSpec& own, DType dtype,
                          const Scratch& scratch) const {
  attend_disentangled(rows.queue, {.counts = rows.counts,
                                   .qkv = scratch.qkv,
                                   .out = scratch.attended,
                                   .positions = rows.positions,
                                   .last_seen = kv.last_seen,
                                   .place_keys = keys,
                                   .place_queries = queries,
                                   .places = places,
                                   .reach = distances.reach,
                                   .num_places = distances.places(),
                                   .max_rows = rows.max_rows,
                                   .num_heads = own.num_heads,
                                   .head_dim = own.head_dim,
                                   .scale = own.scale,
                                   .dtype = dtype});
}

}  // namespace foretoken
