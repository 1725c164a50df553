#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "attention/families.h"
#include "compat/compat.h"
#include "compat/kv_format.h"

// What a sentence says to do is accepted: each flag or value that a remedy names is put into the
// combination, of which the sentence is true no more, and which breaks no rule where it broke one.

namespace foretoken {
namespace {

using Change = std::function<void(Combination&)>;

struct FlagRemoval {
  const char* flag;
  void (*remove)(Combination&);
};
const FlagRemoval kRemovals[] = {
    {"--attention-backend", [](Combination& c) { c.attention = nullptr; }},
    {"--batch-invariant", [](Combination& c) { c.batch_invariant = false; }},
    {"--kv-cache-dtype", [](Combination& c) { c.kv_cache_dtype = "auto"; }},
    {"--flex-mask",
     [](Combination& c) { c.expressions = c.whole_prompts = c.asks_requests = false; }},
    {"--flex-score",
     [](Combination& c) { c.expressions = c.whole_prompts = c.asks_requests = false; }},
    {"--decode-context-parallel-size", [](Combination& c) { c.num_context_ranks = 1; }},
    {"--tensor-parallel-size",
     [](Combination& c) {
       c.num_ranks = c.num_stages.value_or(1);
       if (c.num_context_ranks) c.num_context_ranks = 1;
     }},
    {"--pipeline-parallel-size",
     [](Combination& c) {
       c.num_ranks = c.num_tensor_ranks();
       c.num_stages = 1;
     }},
    {"--data-parallel-size", [](Combination& c) { c.num_engines = 1; }},
    {"--nnodes", [](Combination& c) { c.num_hosts = 1; }},
    {"--data-parallel-hybrid-lb", [](Combination& c) { c.server_per_host = false; }},
    {"--data-parallel-external-lb", [](Combination& c) { c.server_per_engine = false; }},
    {"--data-parallel-rank", [](Combination& c) { c.server_per_engine = false; }},
    {"--headless", [](Combination& c) { c.no_server = false; }},
    {"--data-parallel-size-local", [](Combination& c) { c.num_local_engines.reset(); }},
    {"--distributed-executor-backend", [](Combination& c) { c.one_process = false; }},
    {"--communicator", [](Combination& c) { c.uses_mpi = false; }},
    {"--enable-expert-parallel", [](Combination& c) { c.expert_parallel = false; }},
    {"--enable-dbo", [](Combination& c) { c.two_lanes = false; }},
    {"--kv-offloading-size", [](Combination& c) { c.host_blocks = false; }},
    {"--enable-prefix-caching", [](Combination& c) { c.prefix_caching = true; }},
    {"--quantization",
     [](Combination& c) {
       c.quantization.clear();
       c.named_method.clear();
     }},
    {"--activation-scheme", [](Combination& c) { c.rounds_activations = false; }},
    {"--load-format",
     [](Combination& c) {
       c.load_format.clear();
       c.quantised_format.clear();
     }},
    {"--enable-lora", [](Combination& c) { c.lora = false; }},
    {"--lora-dtype", [](Combination& c) { c.lora_dtype = "auto"; }},
    {"--lora-extra-vocab-size", [](Combination& c) { c.added_ids = 0; }},
    {"--step-time-table", [](Combination& c) { c.step_time_table = false; }},
    {"--profile", [](Combination& c) { c.has_profile = false; }},
    {"--speculative-config",
     [](Combination& c) {
       c.drafter_behind.clear();
       c.idle_field.clear();
       c.unlike_first.clear();
       c.other_vocabulary = false;
       c.num_draft_ranks = 0;
       c.branches = false;
       if (c.bidirectional) c.drafts = false;
     }},
};

Change without(const std::string& flag) {
  for (const FlagRemoval& each : kRemovals) {
    if (each.flag == flag) return each.remove;
  }
  ADD_FAILURE() << flag << " is to be left out: say in kRemovals how";
  return [](Combination&) {};
}

// What to do about a flag that a remedy asks for.
struct FlagValue {
  const char* pattern;  // its first group is the value
  void (*set)(const std::string& value, Combination&);
};
const FlagValue kValues[] = {
    {"(--attention-backend flex --flex-mask 'kv <= q and request') \\(or --flex-score request\\)",
     [](const std::string&, Combination& c) { c.asks_requests = true; }},
    {"--attention-backend (\\w+)",
     [](const std::string& name, Combination& c) {
       c.attention = named_attention(name);
       EXPECT_NE(c.attention, nullptr) << name;
     }},
    {"--batch-invariant (off)",
     [](const std::string&, Combination& c) { c.batch_invariant = false; }},
    {"--block-size (\\d+)",
     [](const std::string& size, Combination& c) { c.model->block_size = std::stoi(size); }},
    {"use one, for example (\\d+)",
     [](const std::string& size, Combination& c) { c.block_size = std::stoi(size); }},
    {"--dtype (\\w+)", [](const std::string& name, Combination& c) { c.dtype = find_dtype(name); }},
    {"--load-format (auto)", [](const std::string&, Combination& c) { c.load_format.clear(); }},
    {"--decode-context-parallel-size (\\d+)",
     [](const std::string& number, Combination& c) { c.num_context_ranks = std::stoi(number); }},
    {"--tensor-parallel-size (\\d\\d+|[2-9])",
     [](const std::string& number, Combination& c) {
       c.num_ranks = std::stoi(number) * c.num_stages.value_or(1);
     }},
    {"(--tensor-parallel-size 1 and --pipeline-parallel-size 1)",
     [](const std::string&, Combination& c) { c.num_ranks = c.num_stages = 1; }},
    {"--pipeline-parallel-size (\\d+( and divide by --tensor-parallel-size)?)",
     [](const std::string& number, Combination& c) {
       const int stages = std::stoi(number);
       const bool divides = number.find("divide") != std::string::npos;
       c.num_ranks = divides ? *c.num_ranks / stages * stages : *c.num_tensor_ranks() * stages;
       c.num_stages = stages;
     }},
    {"--tensor-parallel-size 1(( without --decode-context-parallel-size)?"
     "( and divide by --pipeline-parallel-size)?)",
     [](const std::string& more, Combination& c) {
       const bool divide = more.find("divide") != std::string::npos;
       c.num_stages = divide ? c.num_ranks : c.num_stages.value_or(1);
       c.num_ranks = c.num_stages;
       if (more.find("without") != std::string::npos) c.num_context_ranks = 1;
     }},
    {"a --tensor-parallel-size that divides them( and divide by --pipeline-parallel-size)?",
     [](const std::string& divide, Combination& c) {
       c.num_stages = divide.empty() ? c.num_stages.value_or(1) : c.num_ranks;
       c.num_ranks = c.num_stages;
     }},
    {"--lora-extra-vocab-size (\\d+)",
     [](const std::string& count, Combination& c) { c.added_ids = std::stoi(count); }},
    {"--cudagraph-mode (FULL)", [](const std::string&, Combination& c) { c.only_pieces = false; }},
    {"add --quantization (fp8)",
     [](const std::string&, Combination& c) { c.num_fp8_matrices = 1; }},
    {"--max-logprobs (above 0)",
     [](const std::string&, Combination& c) { c.gives_logprobs = true; }},
    {"--max-processor-rows (above 0)",
     [](const std::string&, Combination& c) { c.keeps_processor_rows = true; }},
    {"use (--data-parallel-hybrid-lb) instead",
     [](const std::string&, Combination& c) {
       c.server_per_engine = false;
       c.server_per_host = true;
     }},
    {"--scheduling-policy (priority)",
     [](const std::string&, Combination& c) { c.has_priorities = true; }},
    {"(?:add|with) (--enable-lora)", [](const std::string&, Combination& c) { c.lora = true; }},
    {"(?:add|with|give) (--speculative-config)",
     [](const std::string&, Combination& c) { c.drafts = c.reckons_with_times = true; }},
    {"with (--chat-template)",
     [](const std::string&, Combination& c) { c.has_chat_template = true; }},
    {"without (--no-enable-auto-tool-choice and --tool-call-parser none)",
     [](const std::string&, Combination& c) { c.finds_tool_calls = true; }},
};

struct Remedy {
  std::string words;
  Change apply;
};

std::vector<std::string> flags_in(const std::string& text) {
  static const std::regex flag("--[a-z][a-z-]+");
  std::vector<std::string> flags;
  for (std::sregex_iterator at(text.begin(), text.end(), flag), end; at != end; ++at) {
    if (std::find(flags.begin(), flags.end(), at->str()) == flags.end()) flags.push_back(at->str());
  }
  return flags;
}

// Takes the next match of the pattern out of the text; its first group with a value, or "".
bool take(const std::string& pattern, std::string* text, std::smatch* found, std::string* source) {
  static std::map<std::string, std::regex> compiled;
  const std::regex& wanted = compiled.try_emplace(pattern, pattern).first->second;
  *source = *text;
  if (!std::regex_search(*source, *found, wanted)) return false;
  *text = found->prefix().str() + "#" + found->suffix().str();
  return true;
}

// "auto, int8 or fp8", of the flag that the sentence is about.
void add_names(const std::string& names, const Combination& c, std::vector<Remedy>* remedies) {
  static const std::regex name("\\w+");
  for (std::sregex_iterator at(names.begin(), names.end(), name), end; at != end; ++at) {
    const std::string value = at->str();
    if (value == "or") continue;
    remedies->push_back({value, [value, &c](Combination& changed) {
                           if (!c.load_format.empty()) changed.load_format = value;
                           if (!c.kv_cache_dtype.empty()) changed.kv_cache_dtype = value;
                         }});
  }
}

// All that stands behind the first semicolon.
std::vector<Remedy> remedies_of(const std::string& sentence, const Combination& c) {
  const size_t at = sentence.find("; ");
  EXPECT_NE(at, std::string::npos) << sentence;
  const std::string why = sentence.substr(0, at);
  std::string rest = sentence.substr(at);
  std::vector<std::string> of = flags_in(why);
  std::erase(of, "--flex-score");  // a part of the same
  if (why.starts_with("speculative config")) of.insert(of.begin(), "--speculative-config");
  std::vector<Remedy> remedies;
  std::smatch found;
  std::string source;
  while (take("(leave|remove) one of (them|the two) ?(out)?", &rest, &found, &source)) {
    for (size_t i = 0; i < std::min<size_t>(of.size(), 2); ++i) {
      remedies.push_back({"without " + of[i], without(of[i])});
    }
  }
  while (take("leave the field out", &rest, &found, &source)) {
    remedies.push_back({found.str(), [](Combination& changed) {
                          changed.structured_outputs = changed.other_vocabulary = false;
                        }});
  }
  while (take("(leave|remove) it( out)?", &rest, &found, &source)) {
    if (!of.empty()) remedies.push_back({"without " + of[0], without(of[0])});
  }
  // The flags of one phrase are left out together.
  while (take("leave ((--[a-z-]+( mpi)?(, | and )?)+) out", &rest, &found, &source)) {
    const std::vector<std::string> flags = flags_in(found[1].str());
    remedies.push_back({"without " + found[1].str(), [flags](Combination& changed) {
                          for (const std::string& flag : flags) without(flag)(changed);
                        }});
  }
  while (take("or (--enable-prefix-caching) off", &rest, &found, &source)) {
    remedies.push_back({found.str(), without(found[1].str())});
  }
  // Names of attention backends, with others of theirs.
  if (take("use auto(?: or|, or for models with(?:out)? latents) one of: (.*)$", &rest, &found,
           &source)) {
    const std::string names = std::regex_replace(found[1].str(), std::regex(" \\([^)]*\\)|,"), "");
    std::istringstream all("auto " + names);
    for (std::string name; all >> name;) {
      remedies.push_back({name, [name](Combination& changed) {
                            changed.attention = nullptr;
                            for (const AttentionBackend* backend : attention_backends()) {
                              if (backend->traits().name == name) changed.attention = backend;
                            }
                          }});
    }
  }
  while (take("use (auto((, \\w+)*( or (?!give|--)\\w+))?)", &rest, &found, &source)) {
    add_names(found[1].str(), c, &remedies);
  }
  for (const FlagValue& value : kValues) {
    while (take(value.pattern, &rest, &found, &source)) {
      remedies.push_back({found.str(), [set = value.set, text = found[1].str()](
                                           Combination& changed) { set(text, changed); }});
    }
  }
  EXPECT_TRUE(flags_in(rest).empty()) << "no test knows what is to be done: " << rest;
  return remedies;
}

int num_broken(const Combination& c) {
  int count = 0;
  for (const CompatRule& rule : compat_rules()) count += rule.is_broken(c) ? 1 : 0;
  return count;
}

// How many remedies were tried.
int expect_remedies(const Combination& c) {
  const std::string sentence = compat(c).message();
  if (sentence.empty()) return 0;
  const std::vector<Remedy> remedies = remedies_of(sentence, c);
  const bool is_alone = num_broken(c) == 1;
  for (const Remedy& remedy : remedies) {
    Combination changed = c;
    remedy.apply(changed);
    const std::string now = compat(changed).message();
    EXPECT_NE(now, sentence) << remedy.words;
    // Where nothing else is wrong, nothing is.
    EXPECT_TRUE(!is_alone || now.empty()) << now << "\n" << sentence << "\n" << remedy.words;
  }
  return static_cast<int>(remedies.size());
}

TEST(Remedies, EachOfEveryRuleIsAccepted) {
  int tried = 0;
  for (const CompatRule& rule : compat_rules()) tried += expect_remedies(rule.example);
  EXPECT_GT(tried, static_cast<int>(compat_rules().size()) / 2);
}

// Layers that stay in stages, in every layout.
TEST(Remedies, AreThoseOfLayersAndLayoutsTogether) {
  const Change layouts[] = {[](Combination& c) { c.num_ranks = c.num_stages = 2; },
                            [](Combination& c) { c.num_ranks = c.num_stages = 4; },
                            [](Combination& c) { c.num_ranks = 2; },
                            [](Combination& c) { c.num_ranks = c.num_context_ranks = 2; },
                            [](Combination& c) {
                              c.num_ranks = 2;
                              c.two_lanes = true;
                            },
                            [](Combination& c) {
                              c.num_engines = 2;
                              c.expert_parallel = true;
                            }};
  int tried = 0;
  for (const int most : {0, 1, 2, 3}) {
    for (const Change& layout : layouts) {
      Combination c = {.architecture = "Model", .layers = LayerNeeds{.max_stages = most}};
      layout(c);
      tried += expect_remedies(c);
    }
  }
  EXPECT_GT(tried, 3);
}

// Every attention and KV type on every device, with latents and without.
TEST(Remedies, AreThoseOfAttentionDevicesAndKvTypesTogether) {
  int tried = 0;
  for (const DeviceTraits& device : device_types()) {
    for (const AttentionBackend* backend : attention_backends()) {
      for (const char* kv : {"auto", "int8", "fp8", "float32", "nvfp4", "int9"}) {
        for (const bool latent : {false, true}) {
          for (const bool invariant : {false, true}) {
            Combination c = {.device = &device,
                             .attention = backend,
                             .kv_cache_dtype = kv,
                             .dtype = DType::kBF16,
                             .latent = latent,
                             .batch_invariant = invariant};
            tried += expect_remedies(c);
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 100);
}

}  // namespace
}  // namespace foretoken
