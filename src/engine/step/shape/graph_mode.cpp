#include "engine/step/shape/graph_mode.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace foretoken {
namespace {

constexpr std::array<std::pair<GraphMode, const char*>, 5> kNames = {
    {{GraphMode::kNone, "NONE"},
     {GraphMode::kPiecewise, "PIECEWISE"},
     {GraphMode::kFull, "FULL"},
     {GraphMode::kFullDecodeOnly, "FULL_DECODE_ONLY"},
     {GraphMode::kFullAndPiecewise, "FULL_AND_PIECEWISE"}}};

Result<GraphMode> parse_mode(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string names;
  for (const auto& [mode, name] : kNames) {
    if (upper == name) return mode;
    names += (names.empty() ? "" : mode == kNames.back().first ? " or " : ", ") + std::string(name);
  }
  return invalid_argument("cudagraph_mode '" + std::string(text) + "' is unknown; use " + names);
}

Status no_size_left(const std::string& bound) {
  return invalid_argument("no size of cudagraph_capture_sizes is within " + bound +
                          "; name a smaller size, or none of them");
}

Status no_size(const std::string& flag, int size) {
  return invalid_argument(flag + " " + std::to_string(size) +
                          ": graphs are made for numbers of token rows; use 1 or more");
}

// Sizes as they are named, or 1, 2, 4, ... up to the one that is named.
Result<std::vector<int>> resolve_sizes(const EngineConfig& config) {
  std::vector<int> sizes = config.cudagraph_capture_sizes;
  const int most = config.max_cudagraph_capture_size;
  if (most < 0) return no_size("--max-cudagraph-capture-size", most);
  for (const int size : sizes) {
    if (size < 1) return no_size("--cudagraph-capture-sizes", size);
  }
  if (sizes.empty()) {
    for (int64_t size = 1; size < most; size *= 2) sizes.push_back(static_cast<int>(size));
    if (most > 0) sizes.push_back(most);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (most > 0) std::erase_if(sizes, [&](int size) { return size > most; });
  if (most > 0 && sizes.empty()) {
    return no_size_left("max_cudagraph_capture_size " + std::to_string(most));
  }
  const int rows = config.max_num_batched_tokens;
  const bool any = !sizes.empty();
  if (rows > 0) std::erase_if(sizes, [&](int size) { return size > rows; });
  if (any && sizes.empty() && config.cudagraph_capture_sizes.empty()) sizes.push_back(rows);
  if (any && sizes.empty()) return no_size_left("--max-num-batched-tokens " + std::to_string(rows));
  return sizes;
}

}  // namespace

StepLaunch launch_of(GraphMode mode, bool decodes) {
  switch (mode) {
    case GraphMode::kNone:
      return StepLaunch::kOps;
    case GraphMode::kPiecewise:
      return StepLaunch::kPieces;
    case GraphMode::kFull:
      return StepLaunch::kGraph;
    case GraphMode::kFullDecodeOnly:
      return decodes ? StepLaunch::kGraph : StepLaunch::kOps;
    case GraphMode::kFullAndPiecewise:
      return decodes ? StepLaunch::kGraph : StepLaunch::kPieces;
  }
  return StepLaunch::kOps;
}

const char* graph_mode_name(GraphMode mode) { return kNames[static_cast<size_t>(mode)].second; }

Result<GraphConfig> resolve_graphs(const EngineConfig& config, bool attention_in_graphs) {
  GraphConfig graphs;
  FT_ASSIGN_OR_RETURN(graphs.mode, parse_mode(config.cudagraph_mode));
  FT_ASSIGN_OR_RETURN(graphs.sizes, resolve_sizes(config));
  if (config.enforce_eager) graphs.mode = GraphMode::kNone;
  if (!attention_in_graphs && graphs.mode != GraphMode::kNone) graphs.mode = GraphMode::kPiecewise;
  return graphs;
}

}  // namespace foretoken
