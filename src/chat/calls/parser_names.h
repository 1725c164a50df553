#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

// What another engine calls a parser, without the marks that known_parser_name() passes over, and
// its name here.
using OtherParserName = std::pair<std::string_view, std::string_view>;

// The one of `names`, "auto" or "none" that `typed` means: case, '-', '_' and '.' make no
// difference ("DeepSeek-R1", "gpt-oss", SGLang's "deepseekv31"), and one of `others` stands for its
// name here. `typed` itself where it means none of them.
std::string known_parser_name(std::string_view typed, const std::vector<std::string>& names,
                              std::span<const OtherParserName> others);

// Names of SGLang's, TensorRT-LLM's and vLLM's plug-ins.
std::span<const OtherParserName> other_tool_parsers();
std::span<const OtherParserName> other_reasoning_parsers();

}  // namespace foretoken
