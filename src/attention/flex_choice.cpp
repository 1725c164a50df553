#include "attention/flex_choice.h"

#include <utility>

#include "attention/families.h"

namespace foretoken {
namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin));
}

}  // namespace

std::string AttentionChoice::text() const {
  return has_expressions() ? backend + "(" + mask + "; " + score + ")" : backend;
}

AttentionChoice read_attention_choice(std::string_view text) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return {trimmed(text), {}, {}};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const size_t cut = inside.find(';');
  const std::string score =
      cut == std::string_view::npos ? std::string() : trimmed(inside.substr(cut + 1));
  return {trimmed(text.substr(0, open)), trimmed(inside.substr(0, cut)), score};
}

FlexAttention::FlexAttention(FlexProgram program)
    : program_(std::move(program)), backend_(flex_attention().traits(), &program_) {}

Result<std::unique_ptr<FlexAttention>> FlexAttention::create(const AttentionChoice& choice,
                                                             const Device& device, DType dtype,
                                                             KvFormat format,
                                                             const FlexHeads& heads) {
  FT_ASSIGN_OR_RETURN(FlexProgram program,
                      parse_flex(choice.mask, choice.score, heads.among_chosen));
  add_tile_sources(program, heads.sizes, heads.are_all);
  std::unique_ptr<FlexAttention> made(new FlexAttention(std::move(program)));
  FT_ASSIGN_OR_RETURN(made->held_, hold_flex(device, made->program_, dtype, format));
  return made;
}

}  // namespace foretoken
