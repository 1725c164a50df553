#include "draft/look_up_drafter.h"

#include <utility>

#include "draft/draft_bounds.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

class LookUpDrafter final : public Drafter {
 public:
  LookUpDrafter(const char* name, const DrafterTraits& traits, LookUp look_up)
      : name_(name), traits_(traits), look_up_(std::move(look_up)) {}

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int) const override { return 0; }
  Status take_memory(int, int) override { return {}; }
  int64_t memory_bytes() const override { return 0; }

  void propose(Queue& queue, const DraftStep& step, const DraftShape& shape) override {
    if (shape.num_draft_tokens > 0) look_up_(queue, step, shape);
  }

 private:
  const char* name_;
  const DrafterTraits traits_;
  const LookUp look_up_;
};

}  // namespace

Result<std::unique_ptr<Drafter>> make_look_up_drafter(const DrafterContext& context,
                                                      const char* name, LookUp look_up) {
  FT_ASSIGN_OR_RETURN(const int max_len, draft_max_len(context, context.max_model_len));
  DrafterTraits traits = declared_traits(name);
  traits.max_draft_tokens = context.config.num_speculative_tokens;
  traits.max_len = max_len;
  return std::unique_ptr<Drafter>(
      std::make_unique<LookUpDrafter>(name, traits, std::move(look_up)));
}

}  // namespace foretoken
