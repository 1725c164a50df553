#pragma once
#include <string>

#include "model/layer/layer_spec.h"
#include "model/layer/part_loader.h"

namespace foretoken {

// What loading the feed-forward part of a layer ended with. Where the files have another number of
// experts than config.json says, or experts in other layers, the error names the fields that are
// to be corrected instead of the tensor that was looked for; others stay as they are. `layer`:
// before the names of the layer's tensors; `wanted`: the mixture that it is to have, null: none.
Status with_expert_fields(const PartLoader& loader, const std::string& layer,
                          const ExpertsSpec* wanted, const Status& loaded);

}  // namespace foretoken
