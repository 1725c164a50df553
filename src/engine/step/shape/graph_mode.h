#pragma once
#include <foretoken/config.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foretoken {

// Which steps are recorded as graphs; names and meanings as vLLM's cudagraph_mode.
enum class GraphMode : uint8_t {
  kNone,              // NONE: none
  kPiecewise,         // PIECEWISE: all but attention
  kFull,              // FULL: a step is one graph
  kFullDecodeOnly,    // FULL_DECODE_ONLY: one graph where no prompt is computed, otherwise none
  kFullAndPiecewise,  // FULL_AND_PIECEWISE: the same, otherwise all but attention
};

// How one step is enqueued. The ops are the same each time.
enum class StepLaunch : uint8_t {
  kOps,     // one by one
  kPieces,  // graphs, and attention between them
  kGraph,   // one graph
};

struct GraphConfig {
  GraphMode mode = GraphMode::kFull;
  // Token rows that graphs are made for, ascending; larger steps are enqueued op by op. Empty: 1,
  // 2, 4, ... and the largest step.
  std::vector<int> sizes = {};
  int steps_between_lessons = 1;  // see DeviceTraits
};

// Of a step that computes prompts, or of one in which every sequence decodes.
StepLaunch launch_of(GraphMode mode, bool decodes);

const char* graph_mode_name(GraphMode mode);

// What the configuration asks for, in any case of letters. `attention_in_graphs`: whether the
// attention backend can be captured; where it cannot, whole graphs become pieces.
// InvalidArgument names the flag at fault.
Result<GraphConfig> resolve_graphs(const EngineConfig& config, bool attention_in_graphs);

}  // namespace foretoken
