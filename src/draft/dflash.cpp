#include "draft/dflash.h"

#include "draft/block_drafter.h"

namespace foretoken {

Result<std::unique_ptr<Drafter>> make_dflash_drafter(const DrafterContext& context) {
  return make_block_drafter(context, HeadKind::kDflash, "dflash");
}

}  // namespace foretoken
