#include "engine/start/start_parts.h"

#include "compat/combination.h"
#include "device/device_traits.h"
#include "model/model_parts.h"

namespace foretoken {

Combination parts_of(const EngineConfig& config, const Device& device, const ModelConfig& model) {
  Combination c = combination_of(config);
  c.device = &device_traits(device.type());
  c.opened = &device;
  add_model(model, config.max_model_len, config.block_size, &c);
  return c;
}

}  // namespace foretoken
