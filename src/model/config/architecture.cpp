#include "model/config/architecture.h"

#include <vector>

#include "model/config/families.h"

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

std::string known_architectures_hint(const std::string& name) {
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures()) known.emplace_back(architecture.name);
  return families_hint(name, known);
}

}  // namespace foretoken
