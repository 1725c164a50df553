#include "text/detokenizer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "text/token_table.h"
#include "text/tokenizer.h"

namespace foretoken {
namespace {

constexpr size_t kMaxBytesPerCharacter = 4;
constexpr size_t kPromptContext = 8;
constexpr size_t kMaxPending = 8;

// Bytes of `text` that later tokens cannot change, `num_tokens` being the tokens behind it.
size_t certain_bytes(std::string_view text, size_t num_tokens) {
  size_t end = text.size();
  while (text.substr(0, end).ends_with(kReplacementCharacter)) end -= kReplacementCharacter.size();
  if (end == text.size() || num_tokens < kMaxBytesPerCharacter) return end;
  // Each token has a byte or more: only the last mark can still become a character.
  return text.size() - kReplacementCharacter.size();
}

std::string marks(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += kReplacementCharacter;
  return text;
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, Options options,
                         std::span<const int32_t> prompt)
    : tokenizer_(&tokenizer), options_(options), table_(tokenizer.joined_bytes()) {
  if (table_ != nullptr) return;
  for (size_t i = prompt.size(); i > 0 && context_.size() < kPromptContext; --i) {
    if (!leaves_no_text(prompt[i - 1])) context_.push_back(prompt[i - 1]);
  }
  std::reverse(context_.begin(), context_.end());
  // The context must not begin inside a character, whose rest would spoil what follows.
  const auto begins_inside = [&](int32_t id) {
    const std::string bytes = tokenizer.token_bytes(id).value_or("");
    return !bytes.empty() && is_utf8_continuation(bytes[0]);
  };
  context_.erase(context_.begin(),
                 std::find_if_not(context_.begin(), context_.end(), begins_inside));
}

bool Detokenizer::leaves_no_text(int32_t id) const {
  if (options_.skip_special_tokens && tokenizer_->is_special(id)) return true;
  const auto token = tokenizer_->id_to_token(id);
  return !token || token->empty();
}

// The text that `ids` add to `context`.
Result<std::string> Detokenizer::decode_after(std::span<const int32_t> context,
                                              std::span<const int32_t> ids) const {
  std::vector<int32_t> all(context.begin(), context.end());
  all.insert(all.end(), ids.begin(), ids.end());
  FT_ASSIGN_OR_RETURN(std::string text, tokenizer_->decode(all, options_.skip_special_tokens));
  if (context.empty()) return text;
  FT_ASSIGN_OR_RETURN(const std::string before,
                      tokenizer_->decode(context, options_.skip_special_tokens));
  if (text.starts_with(before)) return text.substr(before.size());
  // A wrong byte reaches back over the run of byte tokens; decode this part of the run alone.
  return tokenizer_->decode(ids, options_.skip_special_tokens);
}

// The pending tokens become the context. Tokens without text (the space that decoding drops at the
// start) cannot stand for the text before them, so they join it.
void Detokenizer::settle(bool has_text) {
  if (has_text) context_.clear();
  if (has_text || context_.size() < kMaxPending) {
    context_.insert(context_.end(), pending_.begin(), pending_.end());
  }
  pending_.clear();
  emitted_ = 0;
}

// Keeps pending_ short in an endless run of bytes that never form a character: moves a prefix whose
// text is emitted and which decodes alike on its own into the context.
Status Detokenizer::drop_settled(const std::string& text) {
  const std::span<const int32_t> pending(pending_);
  for (size_t tail = 1; tail <= kMaxBytesPerCharacter; ++tail) {
    const auto head_ids = pending.first(pending.size() - tail);
    FT_ASSIGN_OR_RETURN(const std::string head, decode_after(context_, head_ids));
    if (head.size() > emitted_) continue;
    FT_ASSIGN_OR_RETURN(const std::string rest, decode_after(head_ids, pending.last(tail)));
    if (head + rest != text) continue;
    context_.assign(head_ids.begin(), head_ids.end());
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(tail));
    emitted_ -= head.size();
    break;
  }
  return {};
}

// An added token after another one: its text without a space before it.
Result<std::string> Detokenizer::append_bare(int32_t id) {
  FT_ASSIGN_OR_RETURN(std::string piece, flush());
  context_.assign(1, id);
  return piece + tokenizer_->token_bytes(id).value_or("");
}

// A byte token. At the very start of a text the general way decides about a leading space.
Result<std::string> Detokenizer::append_byte(int32_t id, char byte) {
  FT_ASSIGN_OR_RETURN(std::string piece, pending_.empty() ? std::string() : flush());
  context_.assign(1, id);
  run_bytes_ += byte;
  const Utf8State state = run_is_wrong_ ? Utf8State::kWrong : utf8_state(run_bytes_);
  if (state == Utf8State::kPartial) return piece;
  run_is_wrong_ = state == Utf8State::kWrong;
  piece += run_is_wrong_ ? marks(run_bytes_.size()) : run_bytes_;
  run_bytes_.clear();
  return piece;
}

// The marks for what no character came of.
std::string Detokenizer::end_byte_run() {
  run_is_wrong_ = false;
  return marks(std::exchange(run_bytes_, {}).size());
}

// Where decoding only joins bytes, what stands before a token does not matter.
std::string Detokenizer::append_bytes(int32_t id) {
  std::string piece;
  if (!options_.skip_special_tokens || !table_->is_special(id)) {
    utf8_.push(table_->bytes(id), &piece);
  }
  return piece;
}

Result<std::string> Detokenizer::append(int32_t id) {
  if (id < 0) return invalid_argument("token id " + std::to_string(id) + " is negative");
  if (table_ != nullptr) return append_bytes(id);
  if (leaves_no_text(id)) return std::string();
  const bool is_added = tokenizer_->is_added(id);
  const bool bare = is_added && last_added_ && !options_.spaces_between_special_tokens;
  if (bare) return append_bare(id);
  last_added_ = is_added;
  const std::optional<uint8_t> byte = tokenizer_->fallback_byte(id);
  const bool starts_text = context_.empty() && pending_.empty();
  if (byte && !(starts_text && *byte == ' ')) return append_byte(id, static_cast<char>(*byte));
  std::string ended = end_byte_run();
  pending_.push_back(id);
  FT_ASSIGN_OR_RETURN(const std::string text, decode_after(context_, pending_));
  const size_t certain = std::max(emitted_, certain_bytes(text, pending_.size()));
  std::string piece = ended + text.substr(std::min(emitted_, text.size()), certain - emitted_);
  emitted_ = certain;
  if (certain >= text.size()) {
    settle(!text.empty());
  } else if (pending_.size() > kMaxPending) {
    FT_RETURN_IF_ERROR(drop_settled(text));
  }
  return piece;
}

Result<std::string> Detokenizer::flush() {
  std::string ended = end_byte_run();
  utf8_.flush(&ended);
  if (pending_.empty()) return ended;
  FT_ASSIGN_OR_RETURN(std::string text, decode_after(context_, pending_));
  const bool has_text = !text.empty();
  text.erase(0, std::min(emitted_, text.size()));
  settle(has_text);
  return ended + text;
}

}  // namespace foretoken
