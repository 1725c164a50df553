#pragma once
#include <foretoken/config.h>
#include <foretoken/engine.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/request/parameters/embedding_prompts.h"
#include "gguf/model_files.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foretoken {

// A model's tokenizer and chat template, as an engine has them, with or without its weights. What
// they are asked is what include/foretoken/engine.h says; any thread.
class EngineTexts {
 public:
  // Of the model in `target`, as `config` says. A model without a chat template, or one that cannot
  // be read, is no error unless the configuration names it.
  static Result<EngineTexts> load(const EngineConfig& config, const ModelFiles& target);

  // Null: --skip-tokenizer-init, or made-up weights without a tokenizer beside them.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  const EmbeddingPrompts& embedding_prompts() const { return embedding_prompts_; }

  Status render_chat(const std::string& messages_json, const std::string& arguments_json,
                     std::string* prompt, std::vector<std::string>* warnings) const;
  const ChatTemplateTraits* chat_template(bool with_tools) const;
  Status encode(const std::string& text, bool add_special_tokens, std::vector<int32_t>* ids) const;
  Status decode(const std::vector<int32_t>& ids, bool skip_special_tokens, std::string* text) const;
  Status token_bytes(int32_t id, std::string* bytes) const;

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  EmbeddingPrompts embedding_prompts_;
  std::optional<ChatTemplate> chat_template_;
  Status chat_template_fault_;  // why the model's own is not there; ok: it has none
};

// An engine that hands what it is asked about texts on to a `Texts`: EngineTexts, or another
// engine. Any thread.
template <class Texts>
class EngineOverTexts : public Engine {
 public:
  Status render_chat(const std::string& messages_json, const std::string& arguments_json,
                     std::string* prompt, std::vector<std::string>* warnings) const final {
    return texts().render_chat(messages_json, arguments_json, prompt, warnings);
  }
  const ChatTemplateTraits* chat_template(bool with_tools) const final {
    return texts().chat_template(with_tools);
  }
  Status encode(const std::string& text, bool add_special_tokens,
                std::vector<int32_t>* ids) const final {
    return texts().encode(text, add_special_tokens, ids);
  }
  Status decode(const std::vector<int32_t>& ids, bool skip_special_tokens,
                std::string* text) const final {
    return texts().decode(ids, skip_special_tokens, text);
  }
  Status token_bytes(int32_t id, std::string* bytes) const final {
    return texts().token_bytes(id, bytes);
  }

 private:
  virtual const Texts& texts() const = 0;
};

}  // namespace foretoken
