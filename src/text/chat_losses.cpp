#include "text/chat_losses.h"

#include <map>
#include <utility>

#include "text/chat_words.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// A shorter text may stand in a prompt by chance.
constexpr size_t kSurely = 12;
constexpr std::string_view kThought = "</think>";
constexpr const char* kSpaces = " \t\r\n\f\v";

// A text of a conversation: where it stands, and what it is.
struct Piece {
  json::json_pointer where;
  std::string text;
  std::string kind;
  size_t message = 0;  // from 1
};

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin));
}

class Pieces {
 public:
  explicit Pieces(const json& messages) {
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!messages[i].is_object()) continue;
      message_ = i + 1;
      add_message(messages[i], json::json_pointer() / i);
    }
  }

  std::vector<Piece> take() && { return std::move(pieces_); }

 private:
  void add(const json& value, const json::json_pointer& where, const std::string& kind) {
    if (!value.is_string()) return;
    std::string_view text = value.get_ref<const std::string&>();
    // What an answer began with may be its reasoning.
    if (const size_t at = text.rfind(kThought); at != std::string_view::npos) {
      text.remove_prefix(at + kThought.size());
    }
    std::string words = trimmed(text);
    if (!words.empty()) pieces_.push_back({where, std::move(words), kind, message_});
  }

  void add_message(const json& message, const json::json_pointer& where) {
    const std::string kind = "the content of " + role_of(message) + " messages";
    const auto content = message.find("content");
    if (content != message.end() && content->is_array()) {
      for (size_t i = 0; i < content->size(); ++i) {
        const json& part = (*content)[i];
        if (part.is_object() && part.contains("text")) {
          add(part["text"], where / "content" / i / "text", kind);
        }
      }
    } else if (content != message.end()) {
      add(*content, where / "content", kind);
    }
    const json* calls = calls_of(message);
    for (size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
      add_call((*calls)[i], where / "tool_calls" / i);
    }
  }

  void add_call(const json& call, const json::json_pointer& where) {
    const bool nested = call.is_object() && call.contains("function");
    const json& function = nested ? call["function"] : call;
    const json::json_pointer at = nested ? where / "function" : where;
    if (!function.is_object()) return;
    if (function.contains("name")) add(function["name"], at / "name", "the names of called tools");
    if (function.contains("arguments")) add_arguments(function["arguments"], at / "arguments");
  }

  // Every text inside an object.
  void add_arguments(const json& value, const json::json_pointer& where) {
    if (value.is_object()) {
      for (const auto& [key, member] : value.items()) add_arguments(member, where / key);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) add_arguments(value[i], where / i);
    } else {
      add(value, where, "the arguments of tool calls");
    }
  }

  std::vector<Piece> pieces_;
  size_t message_ = 0;
};

// `text` as it stands, or inside a JSON string.
bool stands_in(std::string_view prompt, const std::string& text, size_t* from) {
  const auto find = [&](std::string_view words) {
    size_t at = prompt.find(words, *from);
    if (at == std::string_view::npos) at = prompt.find(words);
    if (at == std::string_view::npos) return false;
    *from = at;
    return true;
  };
  if (find(text)) return true;
  for (const bool ascii : {false, true}) {
    const std::string quoted = json(text).dump(-1, ' ', ascii, json::error_handler_t::replace);
    if (find(std::string_view(quoted).substr(1, quoted.size() - 2))) return true;
  }
  return false;
}

std::vector<Piece> doubtful_pieces(std::vector<Piece> pieces, std::string_view prompt) {
  std::vector<Piece> doubtful;
  size_t from = 0;
  for (Piece& piece : pieces) {
    const bool found = stands_in(prompt, piece.text, &from);
    if (!found || piece.text.size() < kSurely) doubtful.push_back(std::move(piece));
  }
  return doubtful;
}

std::string sentence(const std::string& kind, const std::vector<size_t>& messages) {
  std::string text = "the model's chat template does not show " + kind + " (message";
  if (messages.size() > 1) text += 's';
  constexpr size_t kMaxNamed = 5;
  for (size_t i = 0; i < messages.size() && i < kMaxNamed; ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(messages[i]);
  }
  return text + (messages.size() > kMaxNamed ? ", ...)" : ")");
}

// The sentence about tools that the model does not hear of.
void add_tools(const json& tools, std::string_view prompt, std::vector<std::string>* losses) {
  if (!tools.is_array()) return;
  std::string names;
  for (const json& tool : tools) {
    const bool nested = tool.is_object() && tool.contains("function");
    const std::string name = text_at(nested ? tool["function"] : tool, "name");
    if (name.empty() || prompt.find(name) != std::string_view::npos) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (names.empty()) return;
  losses->push_back("the model's chat template does not show the tools " + names +
                    ", so that the model does not know them");
}

bool any_text_stands_in(std::string_view prompt, const json& document) {
  size_t from = 0;
  for (const json& value : document) {
    if (!value.is_string()) continue;
    const std::string text = trimmed(value.get_ref<const std::string&>());
    if (!text.empty() && stands_in(prompt, text, &from)) return true;
  }
  return false;
}

// The sentence about documents of which no text is in the prompt.
void add_documents(const json& documents, std::string_view prompt,
                   std::vector<std::string>* losses) {
  size_t num_lost = 0;
  for (size_t i = 0; documents.is_array() && i < documents.size(); ++i) {
    if (!any_text_stands_in(prompt, documents[i])) ++num_lost;
  }
  if (num_lost == 0) return;
  losses->push_back("the model's chat template does not show " + std::to_string(num_lost) + " of " +
                    std::to_string(documents.size()) +
                    " 'documents', so that the model does not know them; put them into a message");
}

}  // namespace

std::vector<std::string> find_losses(
    const json& messages, const json& variables, std::string_view prompt,
    const std::function<Result<std::string>(const json& messages)>& render) {
  std::vector<std::string> losses;
  if (variables.is_object()) {
    add_tools(variables.value("tools", json()), prompt, &losses);
    add_documents(variables.value("documents", json()), prompt, &losses);
  }
  const std::vector<Piece> doubtful = doubtful_pieces(Pieces(messages).take(), prompt);
  if (doubtful.empty()) return losses;
  json marked = messages;
  const auto mark = [](size_t i) { return "probeWords" + std::to_string(i) + "x"; };
  for (size_t i = 0; i < doubtful.size(); ++i) marked[doubtful[i].where] = mark(i);
  const Result<std::string> with_marks = render(marked);
  std::map<std::string, std::vector<size_t>> lost;
  for (size_t i = 0; i < doubtful.size(); ++i) {
    const Piece& piece = doubtful[i];
    size_t from = 0;
    const bool shown = with_marks.ok() ? with_marks.value().find(mark(i)) != std::string::npos
                                       : stands_in(prompt, piece.text, &from);
    std::vector<size_t>& where = lost[piece.kind];
    if (!shown && (where.empty() || where.back() != piece.message)) where.push_back(piece.message);
  }
  for (const auto& [kind, where] : lost) {
    if (!where.empty()) losses.push_back(sentence(kind, where));
  }
  return losses;
}

}  // namespace foretoken
