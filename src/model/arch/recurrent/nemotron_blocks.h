#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "model/config/config_fields.h"
#include "model/config/layer_pattern.h"

// The layers of Nemotron H Puzzle, whose mixtures differ in size: an object of each layer's own
// fields in `block_configs`, and in `mtp_block_configs` of the draft module's.
namespace foretoken {

// As of Architecture::translate: writes what layers are (layers_block_type) and what all of a kind
// have in common, of mixtures what the draft module or else the first one has; nothing where there
// are no such lists. InvalidArgument or Unsupported names the field at fault.
Status write_block_configs(const ConfigFields& fields, nlohmann::json* json);

// Sets what layers have of their own, where there are such lists, which were read before.
Status read_block_sizes(const ConfigFields& fields, std::vector<LayerConfig>* layers);

}  // namespace foretoken
