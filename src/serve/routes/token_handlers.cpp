#include "serve/routes/token_handlers.h"

#include <fstream>
#include <sstream>

#include "base/files/json_object.h"
#include "http/message/header_text.h"
#include "serve/fields/json_fields.h"
#include "serve/routes/llama_handlers.h"
#include "serve/routes/score_handlers.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Status check_tokens(const std::vector<int32_t>& ids, int vocab_size) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return invalid_argument("'tokens': token id " + std::to_string(id) +
                            " is not in the vocabulary of " + std::to_string(vocab_size));
  }
  return {};
}

Status token_texts(const Engine& engine, const std::vector<int32_t>& ids, json* texts) {
  *texts = json::array();
  for (const int32_t id : ids) {
    std::string text;
    FT_RETURN_IF_ERROR(engine.decode({id}, false, &text));
    texts->push_back(text);
  }
  return {};
}

struct TokenizeBody {
  std::string prompt;
  bool with_texts = false;
  bool add_special = false;
  std::vector<std::string> warnings;
};

// The prompt of a body without "messages".
Status read_prompt(const json& body, const OpenAiDefaults& defaults, TokenizeBody* tokenize) {
  JsonFields fields(body, "", field_notes(defaults, &tokenize->warnings));
  std::string model;
  fields.read("model", &model);
  if (!fields.has("prompt")) {
    fields.fail("'prompt' is missing; give a text, or 'messages', or 'content'");
  }
  fields.read("prompt", &tokenize->prompt);
  fields.read("add_special_tokens", &tokenize->add_special);
  fields.read("return_token_strs", &tokenize->with_texts);
  fields.ignore({"messages", "content", "add_special", "with_pieces"});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  return check_model_name(model, defaults);
}

// The prompt that the messages of a chat make.
Status render_chat_body(const ServeContext& context, json body, TokenizeBody* tokenize) {
  JsonFields fields(body, "");
  fields.read("return_token_strs", &tokenize->with_texts);
  fields.read("add_special_tokens", &tokenize->add_special);
  FT_RETURN_IF_ERROR(fields.status());
  body.erase("return_token_strs");
  OpenAiDefaults defaults = context.defaults;
  defaults.refuse_unparsed_tools = false;
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kChat, body, defaults));
  FT_RETURN_IF_ERROR(render_messages(context.engine, &request, &tokenize->prompt));
  tokenize->warnings = std::move(request.warnings);
  return {};
}

// A text, or a list of bytes where they are no text.
json piece_json(const std::string& bytes) {
  if (http::is_utf8(bytes)) return bytes;
  json list = json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

// llama.cpp's form.
Status answer_content(ServeContext& context, http::Exchange& exchange, Body body) {
  std::vector<std::string> warnings;
  pass_over_model(context.defaults, &body, &warnings);
  JsonFields fields(body, "", field_notes(context.defaults, &warnings));
  std::string model;
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
  fields.read("model", &model);
  fields.read("content", &content);
  fields.read("add_special", &add_special);
  fields.read("parse_special", &parse_special);
  fields.read("with_pieces", &with_pieces);
  fields.ignore({"prompt", "messages"});
  fields.check_unread();
  if (!parse_special) {
    fields.fail("'parse_special' must be true: names of special tokens become their ids here");
  }
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_model_name(model, context.defaults));
  std::vector<int32_t> ids;
  FT_RETURN_IF_ERROR(encode_bounded(context.engine, content, add_special, &ids));
  json tokens = json::array();
  for (const int32_t id : ids) {
    std::string bytes;
    if (with_pieces) FT_RETURN_IF_ERROR(context.engine.token_bytes(id, &bytes));
    tokens.push_back(with_pieces ? json{{"id", id}, {"piece", piece_json(bytes)}} : json(id));
  }
  respond_with_warnings(context, exchange, {{"tokens", std::move(tokens)}}, warnings);
  return {};
}

// Special tokens as texts, and what other files than tokenizer_config.json or flags say.
void complete_tokenizer_info(const Engine& engine, json* info) {
  for (auto& [name, value] : info->items()) {
    if (!name.ends_with("_token") || !value.is_object()) continue;
    const auto content = value.find("content");
    if (content != value.end() && content->is_string()) value = json(*content);
  }
  const EngineInfo& facts = engine.info();
  const auto complete = [info](const char* name, const json& value) {
    if (!info->contains(name) || (*info)[name].is_null()) (*info)[name] = value;
  };
  if (!facts.bos_token.empty()) complete("bos_token", facts.bos_token);
  if (!facts.eos_token.empty()) complete("eos_token", facts.eos_token);
  complete("model_max_length", facts.max_position_embeddings);
  complete("tokenizer_class", "PreTrainedTokenizerFast");
  if (const ChatTemplateTraits* traits = engine.chat_template(false)) {
    (*info)["chat_template"] = traits->source;
  }
}

}  // namespace

Status handle_tokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                       const Body& body) {
  if (JsonFields(body, "").has("content")) return answer_content(context, *exchange, body);
  if (JsonFields(body, "").has("inputs")) return handle_tei_tokenize(context, exchange, body);
  TokenizeBody asked;
  const bool chat = body.contains("messages") && !body["messages"].is_null();
  asked.add_special = !chat;
  if (chat && body.contains("prompt")) {
    return invalid_argument("give 'prompt' or 'messages', not both");
  }
  FT_RETURN_IF_ERROR(chat ? render_chat_body(context, body, &asked)
                          : read_prompt(body, context.defaults, &asked));
  std::vector<int32_t> ids;
  FT_RETURN_IF_ERROR(encode_bounded(context.engine, asked.prompt, asked.add_special, &ids));
  json answer = {{"count", ids.size()},
                 {"max_model_len", context.engine.info().max_model_len},
                 {"tokens", ids},
                 {"token_strs", nullptr}};
  if (asked.with_texts) {
    FT_RETURN_IF_ERROR(token_texts(context.engine, ids, &answer["token_strs"]));
  }
  respond_with_warnings(context, *exchange, std::move(answer), asked.warnings);
  return {};
}

Status handle_detokenize(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange,
                         const Body& body) {
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(context.defaults, &warnings));
  std::string model;
  std::vector<int32_t> ids;
  fields.read("model", &model);
  if (!fields.has("tokens")) fields.fail("'tokens' is missing; give an array of token ids");
  fields.read("tokens", &ids);
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_model_name(model, context.defaults));
  FT_RETURN_IF_ERROR(check_tokens(ids, context.engine.info().vocab_size));
  std::string text;
  FT_RETURN_IF_ERROR(context.engine.decode(ids, false, &text));
  respond_with_warnings(context, *exchange, {{"prompt", text}, {"content", text}}, warnings);
  return {};
}

Status answer_tokenizer_info(const ServeContext& context, http::Exchange& exchange) {
  std::vector<int32_t> none;
  FT_RETURN_IF_ERROR(context.engine.encode("", false, &none));
  const std::string path = context.config.model_folder + "/tokenizer_config.json";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  json info = json::object();
  if (file) {
    FT_ASSIGN_OR_RETURN(info, parse_ordered_json_object(text.str(), path));
  }
  complete_tokenizer_info(context.engine, &info);
  respond_json(exchange, 200, info);
  return {};
}

}  // namespace foretoken
