#include "model/config/architecture.h"

namespace foretoken {

std::span<const Architecture> architectures() {
  static const Architecture all[] = {
#define FT_ARCHITECTURE(name) k##name##Architecture,
#include "model/config/architectures.def"
#undef FT_ARCHITECTURE
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
