#include "model/weights/stages.h"

#include <algorithm>
#include <limits>
#include <string>

namespace foretoken {
namespace {

// The layers that may begin a stage, behind layer 0.
std::vector<int32_t> places_of(const ModelConfig& config) {
  std::vector<int32_t> places;
  const auto num_layers = static_cast<int32_t>(config.layers.size());
  for (int32_t layer = 1; layer < num_layers; ++layer) {
    if (may_begin_stage(config, layer)) places.push_back(layer);
  }
  return places;
}

// `count` of the places that cut `num_layers` with the least sum of the squares of the parts.
std::vector<int32_t> divide_evenly(const std::vector<int32_t>& places, size_t count,
                                   int32_t num_layers) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
  const auto square = [](int64_t part) { return part * part; };
  // Of parts before place j, of which the last one begins with the cut before it.
  std::vector<std::vector<int64_t>> least(count, std::vector<int64_t>(places.size(), kNever));
  std::vector<std::vector<size_t>> before(count, std::vector<size_t>(places.size(), 0));
  for (size_t cut = 0; cut < count; ++cut) {
    for (size_t j = cut; j < places.size(); ++j) {
      if (cut == 0) least[0][j] = square(places[j]);
      for (size_t i = 0; cut > 0 && i < j; ++i) {
        const int64_t sum = least[cut - 1][i] + square(places[j] - places[i]);
        if (sum >= least[cut][j]) continue;
        least[cut][j] = sum;
        before[cut][j] = i;
      }
    }
  }
  size_t at = count - 1;
  int64_t best = kNever;
  for (size_t j = count - 1; j < places.size(); ++j) {
    const int64_t sum = least[count - 1][j] + square(num_layers - places[j]);
    if (sum >= best) continue;
    best = sum;
    at = j;
  }
  std::vector<int32_t> cuts(count);
  for (size_t cut = count; cut-- > 0; at = before[cut][at]) cuts[cut] = places[at];
  return cuts;
}

}  // namespace

bool may_begin_stage(const ModelConfig& config, int32_t layer) {
  const auto& layers = config.layers;
  if (layers[static_cast<size_t>(layer)].part > 0) return false;
  return std::none_of(layers.begin() + layer, layers.end(), [&](const LayerConfig& behind) {
    return behind.kv_of >= 0 && behind.kv_of < layer;
  });
}

int32_t max_stages(const ModelConfig& config) {
  return static_cast<int32_t>(places_of(config).size()) + 1;
}

Result<Stages> divide_layers(const ModelConfig& config, Stages stages) {
  stages.begins.clear();
  const std::vector<int32_t> places = places_of(config);
  const auto num_layers = static_cast<int32_t>(config.layers.size());
  if (stages.count > static_cast<int32_t>(places.size()) + 1) {
    return invalid_argument("--pipeline-parallel-size " + std::to_string(stages.count) +
                            " exceeds the model's " + std::to_string(num_layers) +
                            " layers; lower it");
  }
  for (int32_t stage = 1; stage < stages.count; ++stage) {
    const auto even = static_cast<int32_t>(int64_t{num_layers} * stage / stages.count);
    if (std::binary_search(places.begin(), places.end(), even)) continue;
    stages.begins = divide_evenly(places, static_cast<size_t>(stages.count - 1), num_layers);
    break;
  }
  return stages;
}

}  // namespace foretoken
