#include "draft/mtp.h"

#include "draft/head_drafter.h"

namespace foretoken {

Result<std::unique_ptr<Drafter>> make_mtp_drafter(const DrafterContext& context) {
  return make_head_drafter(context, HeadKind::kMtp, "mtp");
}

}  // namespace foretoken
