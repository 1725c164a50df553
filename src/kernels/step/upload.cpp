#include "kernels/step/upload.h"

#include "base/check.h"
#include "kernels/plan_layout.h"

namespace foretoken {

void upload(Queue& queue, const UploadArgs& args) {
  FT_CHECK(args.step != nullptr && args.ring != nullptr && args.plan != nullptr);
  FT_CHECK(args.limits.max_spans > 0 && args.limits.max_tokens > 0);
  FT_CHECK(args.limits.max_block_updates > 0 && args.entry_bytes >= plan_bytes(args.limits));
  FT_CHECK(args.batch.slots != nullptr && args.batch.params != nullptr);
  FT_CHECK(args.batch.block_tables != nullptr && args.batch.token_pages != nullptr);
  FT_CHECK(args.batch.page_headers != nullptr && args.batch.block_size > 0);
  queue.launch(args);
}

}  // namespace foretoken
