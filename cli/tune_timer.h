// Times the tuner's arms on one GPU, every rank a stream.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/bench_run.h"
#include "generator/tune/run.h"
#include "generator/verify/exchange_case.h"
#include "runtime/backend/backend.h"

namespace afdep::cli {

class GpuTimer final : public tune::Timer {
 public:
  // The backend must outlive it. tokens of each source: the bucket's.
  GpuTimer(Backend& backend, const BenchOptions& options);
  ~GpuTimer() override;

  Result<void> open(const tune::Arm& arm, const spec::Spec& spec) override;
  Result<double> time(const tune::Arm& arm) override;
  void close_all() override;

 private:
  struct OpenArm;

  Backend& backend_;
  BenchOptions options_;
  std::vector<std::unique_ptr<OpenArm>> open_;
  // The same routes and payload for every arm of a bucket; kept until its end.
  std::optional<verify::ExchangeCase> exchange_;
};

}  // namespace afdep::cli
