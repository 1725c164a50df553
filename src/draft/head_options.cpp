#include "draft/head_options.h"

namespace foretoken {

DraftHeadOptions head_options(const DrafterContext& context, int32_t max_len,
                              const HeadRows& rows) {
  return {.max_model_len = max_len,
          .max_rows = rows.of_pass,
          .max_logits_rows = rows.of_logits,
          .attention = context.attention,
          .dummy = context.dummy,
          .kv_format = context.kv_format,
          .rounding = context.own_rounding,
          .vocab_ids = context.draft_vocab_ids,
          .target_folder = context.target_folder,
          .sharding = context.sharding,
          .states = context.target.shared_head().sharding.context};
}

}  // namespace foretoken
