#include "draft/parts/draft_list.h"

#include "compat/compat.h"

namespace foretoken {

std::vector<std::string> names_of_list(const std::string& method) {
  std::vector<std::string> names(1);
  for (const char c : method) {
    if (c == '+') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

std::string list_name(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (&name == names.data() ? "" : "+") + name;
  return all;
}

Status check_list(const std::string& what, const std::vector<ListedDrafter>& list) {
  if (list.empty()) {
    return invalid_argument(what + ": the list of drafters is empty; name one, for example ngram");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (list[i].name != list[j].name) continue;
      return invalid_argument(what + ": the list names '" + list[i].name +
                              "' twice; leave one out");
    }
    if (i + 1 == list.size()) continue;
    FT_RETURN_IF_ERROR(compat({.drafter = list[i].name,
                               .drafter_traits = &list[i].traits,
                               .drafter_behind = list[i + 1].name,
                               .list = what}));
  }
  return {};
}

}  // namespace foretoken
