#pragma once
#include <foretoken/request.h>

#include <memory>

#include "support/gate.h"

namespace foretoken::test {

// Changes nothing, but the device stands still at its request's first row until the gate opens.
class HoldProcessor final : public LogitsProcessor {
 public:
  void apply(const LogitsContext&, std::span<float>) const override { (void)gate_.wait(); }
  void release() const { gate_.open(); }

 private:
  mutable Gate gate_;
};

}  // namespace foretoken::test
