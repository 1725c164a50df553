#include "model/config/architecture.h"

namespace foretoken {

std::span<const Architecture> architectures() {
  static const Architecture all[] = {
      kLlamaArchitecture, kMistralArchitecture, kQwen2Architecture,
      kQwen3Architecture, kGemma2Architecture,  kGemma3Architecture,
      kPhi3Architecture,  kSmolLm3Architecture, kGemma3ConditionalArchitecture,
  };
  return all;
}

const Architecture* find_architecture(const std::string& name) {
  for (const Architecture& architecture : architectures()) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
}

std::string architecture_names() {
  std::string names;
  for (const Architecture& architecture : architectures()) {
    names += (names.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return names;
}

}  // namespace foretoken
