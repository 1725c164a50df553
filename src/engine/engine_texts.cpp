#include "engine/engine_texts.h"

#include <iterator>
#include <utility>

#include "base/log.h"
#include "compat/compat.h"
#include "engine/request/chat_arguments.h"
#include "engine/start/load_format.h"
#include "gguf/model_texts.h"
#include "text/chat_prompt.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

Status no_tokenizer() { return compat({.converts_texts = true, .has_tokenizer = false}); }

}  // namespace

Result<EngineTexts> EngineTexts::load(const EngineConfig& config, const ModelFiles& target) {
  EngineTexts texts;
  const bool optional = config.skip_tokenizer_init ||
                        (is_dummy(config.load_format) && !has_model_text(target, "tokenizer.json"));
  if (optional) return texts;
  FT_ASSIGN_OR_RETURN(texts.tokenizer_, load_hf_tokenizer(target));
  texts.embedding_prompts_ = load_embedding_prompts(target);
  Result<ChatTemplate> chat = ChatTemplate::load(target, config.chat_template);
  if (chat.ok()) {
    texts.chat_template_.emplace(std::move(chat).value());
  } else if (chat.status().code() != StatusCode::kNotFound || !config.chat_template.empty()) {
    if (!config.chat_template.empty() || !load_tokenizer_config(target).ok()) return chat.status();
    // Plain prompts and ids need none.
    texts.chat_template_fault_ = invalid_argument(
        chat.status().message() + "; name another with --chat-template, or give a plain prompt");
    FT_LOG(warn, "{}", texts.chat_template_fault_.message());
  }
  return texts;
}

Status EngineTexts::render_chat(const std::string& messages_json, const std::string& arguments_json,
                                std::string* prompt, std::vector<std::string>* warnings) const {
  FT_RETURN_IF_ERROR(chat_template_fault_);
  FT_RETURN_IF_ERROR(compat({.chats = true, .has_chat_template = chat_template_.has_value()}));
  FT_ASSIGN_OR_RETURN(const ChatArguments arguments, parse_chat_arguments(arguments_json));
  const ChatTemplate::Options options{.add_generation_prompt = arguments.add_generation_prompt,
                                      .continue_final_message = arguments.continue_final_message};
  FT_ASSIGN_OR_RETURN(ChatPrompt made, make_chat_prompt(*chat_template_, messages_json,
                                                        arguments.variables, options));
  *prompt = std::move(made.text);
  if (warnings != nullptr) {
    std::move(made.warnings.begin(), made.warnings.end(), std::back_inserter(*warnings));
  }
  return {};
}

const ChatTemplateTraits* EngineTexts::chat_template(bool with_tools) const {
  return chat_template_ ? chat_template_->traits(with_tools ? R"({"tools": []})" : "") : nullptr;
}

Status EngineTexts::encode(const std::string& text, bool add_special_tokens,
                           std::vector<int32_t>* ids) const {
  if (tokenizer_ == nullptr) return no_tokenizer();
  FT_ASSIGN_OR_RETURN(*ids, tokenizer_->encode(text, add_special_tokens));
  return {};
}

Status EngineTexts::decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                           std::string* text) const {
  if (tokenizer_ == nullptr) return no_tokenizer();
  FT_ASSIGN_OR_RETURN(*text, tokenizer_->decode(ids, skip_special_tokens));
  return {};
}

Status EngineTexts::token_bytes(int32_t id, std::string* bytes) const {
  if (tokenizer_ == nullptr) return no_tokenizer();
  if (const std::optional<uint8_t> byte = tokenizer_->fallback_byte(id)) {
    bytes->assign(1, static_cast<char>(*byte));
    return {};
  }
  std::optional<std::string> found = tokenizer_->token_bytes(id);
  if (!found) {
    return invalid_argument("token id " + std::to_string(id) + " is not in the vocabulary");
  }
  *bytes = *std::move(found);
  return {};
}

}  // namespace foretoken
