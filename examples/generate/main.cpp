// Streams one request through a callback while another one runs behind a future.
//   generate MODEL_FOLDER PROMPT
#include <foretoken/engine.h>

#include <cstdio>
#include <future>

namespace {

int fail(const foretoken::Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}

foretoken::EngineConfig config_for(const char* model) {
  foretoken::EngineConfig config;
  config.model = model;
  config.max_num_seqs = 4;
  foretoken::SpeculativeConfig drafter;
  drafter.method = "ngram";
  drafter.num_speculative_tokens = 4;
  drafter.prompt_lookup_max = 3;
  drafter.prompt_lookup_min = 1;
  config.speculative = {drafter};
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL_FOLDER PROMPT\n", argv[0]);
    return 2;
  }
  std::unique_ptr<foretoken::Engine> engine;
  foretoken::Status status = foretoken::make_engine(config_for(argv[1]), &engine);
  if (!status.ok()) return fail(status);

  foretoken::Request behind;
  behind.prompt = "The old king";
  behind.sampling.temperature = 0.8f;
  behind.sampling.seed = 7;
  auto later = engine->generate_async(behind);

  foretoken::Request streamed;
  streamed.prompt = argv[2];
  streamed.sampling.temperature = 0;
  streamed.sampling.max_tokens = 64;
  std::promise<foretoken::RequestOutput> finished;
  status = engine->submit(streamed, [&](const foretoken::RequestOutput& output) {
    std::fputs(output.text.c_str(), stdout);
    std::fflush(stdout);
    if (output.finished) finished.set_value(output);
  });
  if (!status.ok()) return fail(status);
  const foretoken::RequestOutput last = finished.get_future().get();
  if (last.finish_reason == foretoken::FinishReason::kError) return fail(last.status);

  const auto choices = later.get();
  std::printf("\n\nbehind it: %s\n", choices.front().text.c_str());
  std::printf("%lld of %lld drafts accepted\n",
              static_cast<long long>(last.stats.num_accepted_tokens),
              static_cast<long long>(last.stats.num_draft_tokens));
  return 0;
}
