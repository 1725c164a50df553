#include "model/files/tensor_names.h"

#include <string_view>

namespace foretoken {

std::string plain_tensor_name(const std::string& name) {
  std::string plain = name;
  for (const std::string_view part :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "base_layer."}) {
    for (size_t at = 0; (at = plain.find(part, at)) != std::string::npos;) {
      if (at == 0 || plain[at - 1] == '.') {
        plain.erase(at, part.size());
      } else {
        at += part.size();
      }
    }
  }
  for (const std::string_view start : {"module.", "base_model.model."}) {
    if (plain.starts_with(start)) plain.erase(0, start.size());
  }
  return plain;
}

std::string_view wrapper_of(std::string_view name) {
  for (const std::string_view first :
       {"model.embed_tokens.weight", "transformer.wte.weight", "gpt_neox.embed_in.weight"}) {
    if (!name.ends_with(first)) continue;
    const std::string_view before = name.substr(0, name.size() - first.size());
    if (before.ends_with('.') && !before.ends_with("language_model.")) return before;
  }
  return {};
}

bool is_of_training(std::string_view name) {
  for (const std::string_view buffer : {"inv_freq", "cos_cached", "sin_cached"}) {
    if (name.ends_with("rotary_emb." + std::string(buffer))) return true;
  }
  return name.starts_with("v_head.") || name.starts_with("value_head.");
}

bool is_adapter_tensor(const std::string& name) {
  return name.find(".lora_A.") != std::string::npos || name.find(".lora_B.") != std::string::npos;
}

}  // namespace foretoken
