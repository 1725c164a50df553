#include <foretoken/prompt_length.h>

#include <algorithm>
#include <utility>

#include "serve/openai/openai_request.h"

// Chats whose oldest messages are left out where all of them do not fit.

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

bool is_one_of(const json& message, std::initializer_list<const char*> roles) {
  const auto role = message.find("role");
  return role != message.end() && std::ranges::count(roles, *role) > 0;
}

// Where what is kept of a history may begin: not between a call and its result.
struct History {
  json messages;
  size_t num_instructions = 0;  // at the beginning, which are always kept
  std::vector<size_t> begins;

  explicit History(json all) : messages(std::move(all)) {
    while (num_instructions < messages.size() &&
           is_one_of(messages[num_instructions], {"system", "developer"})) {
      ++num_instructions;
    }
    for (size_t i = num_instructions + 1; i < messages.size(); ++i) {
      if (!is_one_of(messages[i], {"tool", "function"})) begins.push_back(i);
    }
  }

  std::string from(size_t begin) const {
    json kept = json::array();
    for (size_t i = 0; i < messages.size(); ++i) {
      if (i < num_instructions || i >= begin) kept.push_back(messages[i]);
    }
    return kept.dump();
  }
};

// Marks that a tokenizer puts around a text, at most; beside them a token has a byte at least.
constexpr int kMaxMarks = 16;

Result<bool> fits(const Engine& engine, const OpenAiRequest& request, int most) {
  const Request& only = request.requests.front();
  const std::string& prompt = only.prompt;
  if (most > kMaxMarks && prompt.size() <= static_cast<size_t>(most - kMaxMarks)) return true;
  std::vector<int32_t> ids;
  const auto encode = [&](const std::string& text, std::vector<int32_t>* to) {
    return engine.encode(text, only.add_special_tokens, to);
  };
  const Status status = encode_prompt(prompt, most, encode, &ids);
  if (is_prompt_too_long(status)) return false;
  FT_RETURN_IF_ERROR(status);
  return ids.size() <= static_cast<size_t>(std::max(most, 0));
}

// A quarter of the context is for the answer, or what it may have of that.
int longest_cut_prompt(const Engine& engine, const OpenAiRequest& request) {
  const int context = engine.info().max_model_len;
  return context - std::clamp(request.requests.front().sampling.max_tokens, 1, context / 4 + 1);
}

Status render(const Engine& engine, OpenAiRequest* request) {
  std::string prompt;
  FT_RETURN_IF_ERROR(render_messages(engine, request, &prompt));
  request->requests.front().prompt = std::move(prompt);
  return {};
}

// The rendered chat without what stands before `begin`; null: it does not fit.
Result<std::optional<OpenAiRequest>> chat_from(const Engine& engine, const OpenAiRequest& whole,
                                               const History& history, size_t begin) {
  std::optional<OpenAiRequest> chat = whole;
  chat->messages_json = history.from(begin);
  FT_RETURN_IF_ERROR(render(engine, &*chat));
  FT_ASSIGN_OR_RETURN(const bool is_short, fits(engine, *chat, longest_cut_prompt(engine, whole)));
  if (!is_short) chat.reset();
  return chat;
}

}  // namespace

Status render_history(const Engine& engine, OpenAiRequest* request) {
  if (!request->drops_oldest) return render(engine, request);
  const OpenAiRequest whole = *request;
  FT_RETURN_IF_ERROR(render(engine, request));
  FT_ASSIGN_OR_RETURN(const bool all_fit, fits(engine, *request, engine.info().max_model_len - 1));
  if (all_fit) return {};
  const History history(json::parse(whole.messages_json));
  std::optional<OpenAiRequest> best;
  size_t low = 0, high = history.begins.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    FT_ASSIGN_OR_RETURN(std::optional<OpenAiRequest> chat,
                        chat_from(engine, whole, history, history.begins[middle]));
    if (chat) {
      best = std::move(chat);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  // As it is, it is told to be too long.
  if (!best) return {};
  *request = *std::move(best);
  const size_t num_left_out = history.begins[high] - history.num_instructions;
  request->warnings.push_back(
      "the conversation is longer than the context of " +
      std::to_string(engine.info().max_model_len) + " tokens (--max-model-len): its oldest " +
      std::to_string(num_left_out) + (num_left_out == 1 ? " message was" : " messages were") +
      " left out");
  return {};
}

}  // namespace foretoken
