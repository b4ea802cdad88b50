#include "cli/tune_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/rank_timers.h"
#include "generator/generate.h"
#include "generator/spec/names.h"
#include "generator/verify/world.h"

namespace afdep::cli {
namespace {

constexpr int kExchangesARepeat = 100;  // at least
constexpr int kMaxThreads = 8;          // that compile

Result<void> replay_all(verify::World& world, const std::vector<Graph>& graphs) {
  for (int rank = 0; rank < world.ranks(); ++rank) {
    AFDEP_RETURN_IF_FAILED(
        world.backend().replay(graphs[static_cast<std::size_t>(rank)], world.stream(rank)));
  }
  return {};
}

Result<bundle::Bundle> compile(const spec::Spec& spec, std::string_view arch) {
  const std::optional<spec::Arch> known = spec::from_name<spec::Arch>(arch);
  if (!known) {
    return Failure(ErrorCode::kArch, fmt::format("this GPU is {}", arch),
                   "kernels are compiled for " + spec::join(spec::name_texts<spec::Arch>()));
  }
  spec::Spec own = spec;
  own.arch.value = {*known};
  GenerateOptions options;
  options.threads =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  Result<Generated> generated = generate(own, options);
  if (!generated.ok()) return generated.failure();
  return std::move(generated->bundle);
}

}  // namespace

struct GpuTimer::OpenArm {
  std::string name;
  std::unique_ptr<verify::World> world;
  std::vector<Graph> graphs;

  OpenArm() = default;
  OpenArm(const OpenArm&) = delete;
  OpenArm& operator=(const OpenArm&) = delete;
  ~OpenArm() {
    for (const Graph graph : graphs) world->backend().destroy_graph(graph);
  }
};

GpuTimer::GpuTimer(Backend& backend, const BenchOptions& options)
    : backend_(backend), options_(options) {}
GpuTimer::~GpuTimer() = default;

Result<void> GpuTimer::open(const tune::Arm& arm, const spec::Spec& spec) {
  const Result<bundle::Bundle> bundle = compile(spec, backend_.arch());
  if (!bundle.ok()) return bundle.failure();
  Result<std::unique_ptr<verify::World>> made = verify::World::create(backend_, *bundle, {});
  if (!made.ok()) return made.failure();
  auto opened = std::make_unique<OpenArm>();
  opened->name = arm.name();
  opened->world = std::move(*made);
  verify::World& world = *opened->world;
  const int bucket = arm.variants.front().bucket;
  const Result<verify::Slot*> slot = world.add_slot(bucket);
  if (!slot.ok()) return slot.failure();
  if (!exchange_) {
    verify::Random random(options_.seed);
    const std::vector<int> tokens(static_cast<std::size_t>(world.shape().sources), bucket);
    exchange_ = verify::make_case(world.shape(), bucket, world.receive_rows(bucket), tokens,
                                  options_.routing, random);
  }
  AFDEP_RETURN_IF_FAILED(world.load(**slot, *exchange_));
  Result<std::vector<Graph>> graphs = world.capture(**slot, options_.exchanges_per_graph);
  if (!graphs.ok()) return graphs.failure();
  opened->graphs = std::move(*graphs);
  AFDEP_RETURN_IF_FAILED(backend_.synchronize_all());
  AFDEP_RETURN_IF_FAILED(replay_all(world, opened->graphs));
  AFDEP_RETURN_IF_FAILED(backend_.synchronize_all());
  AFDEP_RETURN_IF_FAILED(world.check_all());
  const Result<std::vector<std::string>> differences = world.compare(**slot, *exchange_);
  if (!differences.ok()) return differences.failure();
  if (!differences->empty()) {
    return Failure(ErrorCode::kVerification,
                   fmt::format("{}: {}", arm.name(), differences->front()),
                   "nothing is tuned with wrong data");
  }
  open_.push_back(std::move(opened));
  return {};
}

Result<double> GpuTimer::time(const tune::Arm& arm) {
  const auto found =
      std::ranges::find(open_, arm.name(), [](const auto& each) { return each->name; });
  AFDEP_CHECK(found != open_.end(), "an arm is opened before it is timed");
  verify::World& world = *(*found)->world;
  const std::vector<Graph>& graphs = (*found)->graphs;
  Result<RankTimers> timers = RankTimers::create(world);
  if (!timers.ok()) return timers.failure();
  const int replays = std::max(
      1, (kExchangesARepeat + options_.exchanges_per_graph - 1) / options_.exchanges_per_graph);
  // The other arms' kernels have run since: the first replay warms up.
  AFDEP_RETURN_IF_FAILED(replay_all(world, graphs));
  AFDEP_RETURN_IF_FAILED(backend_.synchronize_all());
  AFDEP_RETURN_IF_FAILED(timers->begin());
  for (int i = 0; i < replays; ++i) AFDEP_RETURN_IF_FAILED(replay_all(world, graphs));
  AFDEP_RETURN_IF_FAILED(timers->end());
  AFDEP_RETURN_IF_FAILED(backend_.synchronize_all());
  const Result<double> slowest = timers->slowest_us();
  if (!slowest.ok()) return slowest.failure();
  return *slowest / (static_cast<double>(replays) * options_.exchanges_per_graph);
}

void GpuTimer::close_all() {
  open_.clear();
  exchange_.reset();
}

}  // namespace afdep::cli
