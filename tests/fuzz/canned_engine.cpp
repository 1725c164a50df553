#include "canned_engine.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace foretoken::test {

void require(bool holds) {
  if (!holds) std::abort();
}

CannedEngine::CannedEngine() {
  info_.vocab_size = 256;
  info_.max_model_len = 512;
  info_.max_num_seqs = 4;
}

Status CannedEngine::submit(Request, OutputCallback, std::string*) {
  return Status(StatusCode::kUnsupported, "nothing runs here");
}

Status CannedEngine::render_chat(const std::string& messages_json,
                                 const std::string& arguments_json, std::string* prompt,
                                 std::vector<std::string>*) const {
  const auto messages = nlohmann::json::parse(messages_json, nullptr, false);
  require(messages.is_array());
  for (const auto& message : messages) require(message.is_object() && message.contains("role"));
  require(arguments_json.empty() ||
          nlohmann::json::parse(arguments_json, nullptr, false).is_object());
  *prompt = messages_json + prompt_end;
  return {};
}

Status CannedEngine::encode(const std::string& text, bool, std::vector<int32_t>* ids) const {
  for (const char c : text) ids->push_back(static_cast<unsigned char>(c));
  return {};
}

Status CannedEngine::decode(const std::vector<int32_t>& ids, bool, std::string* text) const {
  for (const int32_t id : ids) {
    require(id >= 0 && id < info_.vocab_size);
    *text += id < 128 ? static_cast<char>(id) : '?';
  }
  return {};
}

}  // namespace foretoken::test
