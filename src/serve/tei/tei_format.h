#pragma once
#include <string>
#include <vector>

#include "serve/openai/score_format.h"
#include "serve/tei/tei_request.h"

namespace foretoken {

// {"error", "error_type"}, as text-embeddings-inference has it.
nlohmann::ordered_json tei_error(const ServeError& error);

// Its answers have no place for warnings: the log has them.
class TeiFormat : public PooledFormat {
 public:
  explicit TeiFormat(OpenAiLabel label) : PooledFormat(std::move(label), tei_error) {}
};

// [[0.1, ...], ...] of /embed.
class TeiEmbedFormat final : public TeiFormat {
 public:
  TeiEmbedFormat(OpenAiRequest request, OpenAiLabel label)
      : TeiFormat(std::move(label)), request_(std::move(request)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const OpenAiRequest request_;
};

// [0.9, ...] of /similarity: the cosines of the first text with the others.
class TeiSimilarityFormat final : public TeiFormat {
 public:
  using TeiFormat::TeiFormat;
  std::string whole(const std::vector<const OutputSum*>& sums) override;
};

// [{"score", "label"}, ...] of /predict, the likeliest class first; a list of these for a list.
class TeiPredictFormat final : public TeiFormat {
 public:
  // The engine's info outlives it.
  TeiPredictFormat(const EngineInfo& info, TeiPredict predict, OpenAiLabel label)
      : TeiFormat(std::move(label)), info_(info), predict_(std::move(predict)) {}
  std::string whole(const std::vector<const OutputSum*>& sums) override;

 private:
  const EngineInfo& info_;
  const TeiPredict predict_;
};

}  // namespace foretoken
