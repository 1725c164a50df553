#include "draft/parts/absent_drafter.h"

#include "base/check.h"

namespace foretoken {
namespace {

class AbsentDrafter final : public Drafter {
 public:
  AbsentDrafter(const char* name, const DrafterTraits& traits) : name_(name), traits_(traits) {}

  const char* name() const override { return name_; }
  const DrafterTraits& traits() const override { return traits_; }
  int64_t bytes_per_block(int) const override { return 0; }
  Status take_memory(int, int) override { return {}; }
  int64_t memory_bytes() const override { return 0; }
  void propose(Queue&, const DraftStep&, const DraftShape&) override {
    FT_CHECK_MSG(false, "this rank does not draft");
  }

 private:
  const char* const name_;
  const DrafterTraits traits_;
};

}  // namespace

std::unique_ptr<Drafter> make_absent_drafter(const char* name, const DrafterTraits& traits) {
  return std::make_unique<AbsentDrafter>(name, traits);
}

}  // namespace foretoken
