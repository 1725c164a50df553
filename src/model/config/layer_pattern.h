#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "model/config/config_fields.h"

namespace foretoken {

// Which layers see only a window, where config.json has no layer_types.
enum class WindowRule : uint8_t {
  kNever,
  kAlways,       // all, unless sliding_window is null
  kFromLayer,    // with use_sliding_window, from layer max_window_layers on
  kPattern,      // all but each sliding_window_pattern-th
  kWithoutRope,  // with use_sliding_window, those without rotary positions
};

// What sets one layer apart from others. Sizes of 0 are those of the model.
struct LayerConfig {
  int32_t window = 0;  // positions that a row sees, its own included; 0: all
  bool rope = true;    // false: no positions at all (NoPE)
  bool normed = true;  // false: its mixer reads rows as they are (ModernBERT's first)
  // Sizes of this layer alone; 0: as ModelConfig has them.
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t intermediate_size = 0;
  int32_t expert_inner = 0;  // of an expert
  int32_t top_experts = 0;   // for each row
  // The layer whose keys and values this one reads (Gemma 4), below it; -1: it has its own.
  int32_t kv_of = -1;
  // Parts that a layer may lack (DeciLM).
  bool attention = true;
  bool feed_forward = true;
  // Its mixer is what the architecture has in the place of attention: linear attention, a state
  // space, a convolution.
  bool recurrent = false;
  bool first_values = false;  // as of WkvSpec::is_first
  bool experts = false;  // its feed-forward part is the mixture that ModelConfig::experts tells of
  // The share of the gate's values that is cut off, where they are normal (Gemma 3n); 0: none.
  float sparsity = 0;
  float lambda_init = 0;  // as of GqaSpec
  float rate_scale = 1;   // of the decays of LinearGates::kFixed
  // What activated gates of experts, and of what all rows share, are at most, and ups either way
  // (Step 3.5); 0: anything.
  float expert_limit = 0;
  float shared_limit = 0;
  // Of latent attention whose rows attend to some positions: to those that the layer before it has
  // chosen, or attends to.
  bool shares_index = false;
  bool chooses_blocks = false;  // its rows attend to blocks that an indexer chooses (MiniMax M3)
  // Of compressed attention (CompressedSpec): positions of an entry, 0 where there are none, and
  // whether an indexer chooses among them. And whether tokens say the layer's experts.
  int32_t compress = 0;
  bool chooses = false;
  bool hashed = false;
  // Of DepthSpec: blocks of layers before this one, and whether a block begins with it.
  int32_t blocks_before = 0;
  bool begins_block = false;
  // As of SharedSpec (from, use).
  int32_t shared_from = -1;
  int32_t shared_use = 0;
  int32_t part = 0;  // which of the layers it is that one number of the checkpoint stands for
  bool operator==(const LayerConfig&) const = default;
};

// One entry a layer, from layer_types or the rule, sliding_window, and no_rope_layers or
// no_rope_layer_interval. only_windows_turn and recurrent_type as of Architecture. InvalidArgument
// names the field at fault.
Result<std::vector<LayerConfig>> read_layer_configs(const ConfigFields& fields, WindowRule rule,
                                                    int32_t num_layers,
                                                    bool only_windows_turn = false,
                                                    const char* recurrent_type = nullptr);

// Writes layer_types into *json, the object of `fields`, where it has none: `type_of` is given the
// number of a layer, from 0 on, and how many there are. InvalidArgument without num_hidden_layers,
// or where that is above 2^16.
Status write_layer_types(const ConfigFields& fields,
                         const std::function<const char*(int32_t, int32_t)>& type_of,
                         nlohmann::json* json);

// Writes layer_types, whatever there is: full_attention for the layers whose numbers stand in the
// list `name`, `other` for the rest, and for all without the list. InvalidArgument as above, or
// where the list has a number of no layer.
Status write_attending_layers(const ConfigFields& fields, const char* name, const char* other,
                              nlohmann::json* json);

// How often the layers of a looped model run, from the field `name`; *loops stays where it is
// missing. InvalidArgument for a number that is not from 1 to 16.
Status read_loops(const ConfigFields& fields, const char* name, int32_t* loops);

// Lets the last num_kv_shared_layers of the layers read what the last one of their kind before them
// keeps (Gemma 3n and 4). InvalidArgument where there is none.
Status share_kv(const ConfigFields& fields, std::vector<LayerConfig>* layers);

}  // namespace foretoken
