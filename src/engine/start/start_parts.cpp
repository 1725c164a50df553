#include "engine/start/start_parts.h"

#include "compat/combination.h"
#include "device/device_traits.h"
#include "gguf/container/gguf_file.h"
#include "model/model_parts.h"

namespace foretoken {

void add_files(const EngineConfig& config, Combination* c) {
  c->load_format = config.load_format;
  c->gguf = is_gguf(config.model);
}

Combination parts_of(const EngineConfig& config, const Device& device, const ModelConfig& model) {
  Combination c = combination_of(config);
  c.device = &device_traits(device.type());
  c.opened = &device;
  add_files(config, &c);
  add_model(model, config.max_model_len, config.block_size, &c);
  return c;
}

}  // namespace foretoken
