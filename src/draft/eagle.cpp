#include "draft/eagle.h"

#include "draft/head_drafter.h"

namespace foretoken {

Result<std::unique_ptr<Drafter>> make_eagle_drafter(const DrafterContext& context) {
  return make_head_drafter(context, HeadKind::kEagle, "eagle");
}

}  // namespace foretoken
