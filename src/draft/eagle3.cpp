#include "draft/eagle3.h"

#include "draft/head_drafter.h"

namespace foretoken {

Result<std::unique_ptr<Drafter>> make_eagle3_drafter(const DrafterContext& context) {
  return make_head_drafter(context, HeadKind::kEagle3, "eagle3");
}

Result<std::unique_ptr<Drafter>> make_p_eagle_drafter(const DrafterContext& context) {
  return make_head_drafter(context, HeadKind::kPeagle, "p_eagle");
}

}  // namespace foretoken
