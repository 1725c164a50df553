#pragma once
#include <foretoken/engine.h>

#include <string>

namespace foretoken::test {

// An engine without a model, for what stands before and behind one: a token is a byte, the prompt
// of a chat is its messages, and nothing runs. It aborts the program where the server hands it
// something that is no JSON.
class CannedEngine final : public Engine {
 public:
  CannedEngine();

  Status submit(Request, OutputCallback, std::string*) override;
  void abort(const std::string&) override {}
  std::vector<RequestOutput> generate(std::vector<Request>) override { return {}; }
  std::future<std::vector<RequestOutput>> generate_async(Request) override { return {}; }
  SamplingParams default_sampling_params() const override { return {}; }
  Status render_chat(const std::string& messages_json, const std::string& arguments_json,
                     std::string* prompt, std::vector<std::string>* warnings) const override;
  const ChatTemplateTraits* chat_template(bool) const override { return nullptr; }
  Status encode(const std::string& text, bool add_special_tokens,
                std::vector<int32_t>* ids) const override;
  Status decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                std::string* text) const override;
  Status token_bytes(int32_t, std::string*) const override { return {}; }
  EngineStats stats() const override { return {}; }
  const EngineInfo& info() const override { return info_; }

  // What the prompt of a chat ends with: "<think>" where the template opens the reasoning.
  std::string prompt_end;

 private:
  EngineInfo info_;
};

// Ends the program where `holds` is false.
void require(bool holds);

}  // namespace foretoken::test
