#include "model/weights/module_key.h"

#include <algorithm>
#include <string_view>

namespace foretoken {
namespace {

constexpr std::string_view kLayers[] = {"layers.", "h.", "blocks."};
constexpr std::string_view kTwice = "layers.layers.";  // PLaMo's
// What may stand before that in the names of a text decoder's modules.
constexpr std::string_view kBodies[] = {"",
                                        "model.",
                                        "language_model.",
                                        "language_model.model.",
                                        "model.language_model.",
                                        "language_model.backbone.",
                                        "model.text_model.",
                                        "thinker.",
                                        "thinker.model.",
                                        "llm.",
                                        "llm.model.",
                                        "transformer.",
                                        "backbone.",
                                        "gpt_neox.",
                                        "model.decoder.",
                                        "decoder."};

// The name from "layers." (or what stands for that) on; empty where it names no module of a
// decoder's layer.
std::string in_layers(const std::string& module) {
  for (const std::string_view body : kBodies) {
    if (!module.starts_with(body)) continue;
    std::string_view rest = std::string_view(module).substr(body.size());
    if (rest.starts_with(kTwice)) rest.remove_prefix(kTwice.size() / 2);
    const auto begins = [&](std::string_view layers) { return rest.starts_with(layers); };
    if (std::ranges::any_of(kLayers, begins)) return std::string(rest);
  }
  return "";
}

// The last part of a name beside a decoder's layers, "lm_head" or "embed_tokens"; empty for others.
std::string at_end(const std::string& module) {
  for (const std::string_view body : kBodies) {
    if (!module.starts_with(body)) continue;
    const std::string_view rest = std::string_view(module).substr(body.size());
    if (!rest.empty() && rest.find('.') == rest.npos) return std::string(rest);
  }
  return "";
}

}  // namespace

std::string module_key(const std::string& module) {
  const std::string name = in_layers(module);
  return name.empty() ? at_end(module) : name;
}

std::string behind_number(const std::string& key) {
  const size_t at = key.find('.', key.find('.') + 1);
  return at == std::string::npos ? "" : key.substr(at + 1);
}

}  // namespace foretoken
