#pragma once
#include <foretoken/engine.h>

#include <cstdint>
#include <future>
#include <string>
#include <vector>

namespace foretoken::test {

// An engine that answers nothing to all that a test does not give an answer of its own.
class QuietEngine : public Engine {
 public:
  Status submit(Request, OutputCallback, std::string*) override { return {}; }
  void abort(const std::string&) override {}
  std::vector<RequestOutput> generate(std::vector<Request>) override { return {}; }
  std::future<std::vector<RequestOutput>> generate_async(Request) override { return {}; }
  SamplingParams default_sampling_params() const override { return {}; }
  Status render_chat(const std::string&, const std::string&, std::string*,
                     std::vector<std::string>*) const override {
    return {};
  }
  const ChatTemplateTraits* chat_template(bool) const override { return nullptr; }
  Status encode(const std::string&, bool, std::vector<int32_t>*) const override { return {}; }
  Status decode(const std::vector<int32_t>&, bool, std::string*) const override { return {}; }
  Status token_bytes(int32_t, std::string*) const override { return {}; }
  EngineStats stats() const override { return {}; }
  const EngineInfo& info() const override { return info_; }

 protected:
  EngineInfo info_;
};

}  // namespace foretoken::test
