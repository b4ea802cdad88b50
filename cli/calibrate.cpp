#include "cli/calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "generator/compile/compile.h"
#include "runtime/support/check.h"
#include "templates/embedded.h"

namespace afdep::cli {
namespace {

constexpr int kNodes = 200;    // of the graph whose gaps are measured
constexpr int kRounds = 2000;  // of the flag: two hops each
constexpr int kRepeats = 5;
constexpr std::size_t kLineBytes = 256;  // the two flags do not share a cache line

struct Nothing {  // as in templates/bench/empty.cu
  std::uint32_t reserved = 0;
};
struct HopArgs {  // as in templates/bench/flag_hop.cu
  std::uint32_t* mine;
  std::uint32_t* other;
  std::uint32_t rounds;
  std::uint32_t leads;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<const LoadedKernel*> load(Backend& backend, std::string_view path, std::string symbol) {
  const auto text = templates::find(path);
  AFDEP_CHECK(text.has_value(), "no template " + std::string(path));
  const KernelSource source{std::move(symbol), std::string(path.substr(path.find('/') + 1)),
                            std::string(*text)};
  const Result<CompiledModule> module = compile::compile(source, backend.arch(), {});
  if (!module.ok()) return module.failure();
  return backend.load({source.symbol, source.file_name, source.text, module->image});
}

// Two streams and four events, given back at the end.
class Timers {
 public:
  static Result<Timers> create(Backend& backend) {
    Timers timers(backend);
    for (Stream& stream : timers.streams) {
      const Result<Stream> made = backend.create_stream();
      if (!made.ok()) return made.failure();
      stream = *made;
    }
    for (Event& event : timers.events) {
      const Result<Event> made = backend.create_event();
      if (!made.ok()) return made.failure();
      event = *made;
    }
    return timers;
  }
  Timers(Timers&& other) noexcept
      : streams(std::exchange(other.streams, {})),
        events(std::exchange(other.events, {})),
        backend_(other.backend_) {}
  Timers& operator=(Timers&&) = delete;
  ~Timers() {
    for (const Stream stream : streams) {
      if (stream != Stream{}) backend_.destroy_stream(stream);
    }
    for (const Event event : events) {
      if (event != Event{}) backend_.destroy_event(event);
    }
  }

  std::array<Stream, 2> streams{};
  std::array<Event, 2> events{};

 private:
  explicit Timers(Backend& backend) : backend_(backend) {}
  Backend& backend_;
};

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Result<double> measure_gap(Backend& backend, const Timers& timers, const LoadedKernel& kernel,
                           bool programmatic) {
  const Stream stream = timers.streams[0];
  const Nothing nothing;
  AFDEP_RETURN_IF_FAILED(backend.begin_capture(stream));
  Result<void> launched;
  for (int node = 0; node < kNodes && launched.ok(); ++node) {
    launched = backend.launch({.kernel = &kernel,
                               .grid = 1,
                               .threads = 32,
                               .shared_bytes = 0,
                               .args = &nothing,
                               .args_bytes = sizeof(nothing),
                               .programmatic = programmatic,
                               .rank = 0},
                              stream);
  }
  const Result<Graph> graph = backend.end_capture(stream);
  AFDEP_RETURN_IF_FAILED(launched);
  if (!graph.ok()) return graph.failure();
  std::vector<double> gaps;
  for (int repeat = -1; repeat < kRepeats; ++repeat) {  // the first one warms up
    AFDEP_RETURN_IF_FAILED(backend.record(timers.events[0], stream));
    AFDEP_RETURN_IF_FAILED(backend.replay(*graph, stream));
    AFDEP_RETURN_IF_FAILED(backend.record(timers.events[1], stream));
    AFDEP_RETURN_IF_FAILED(backend.synchronize(stream));
    const auto elapsed = backend.elapsed(timers.events[0], timers.events[1]);
    if (!elapsed.ok()) return elapsed.failure();
    if (repeat >= 0) gaps.push_back(microseconds(*elapsed) / kNodes);
  }
  backend.destroy_graph(*graph);
  return median(gaps);
}

Result<double> measure_hop(Backend& backend, const Timers& timers, const LoadedKernel& kernel) {
  const Result<void*> flags = backend.allocate(2 * kLineBytes);
  if (!flags.ok()) return flags.failure();
  auto* const first = static_cast<std::uint32_t*>(*flags);
  std::uint32_t* const second = first + kLineBytes / sizeof(std::uint32_t);
  std::vector<double> hops;
  Result<void> ran;
  for (int repeat = -1; repeat < kRepeats && ran.ok(); ++repeat) {
    const auto one = [&]() -> Result<void> {
      AFDEP_RETURN_IF_FAILED(backend.fill(*flags, 0, 2 * kLineBytes));
      AFDEP_RETURN_IF_FAILED(backend.record(timers.events[0], timers.streams[0]));
      for (std::uint32_t side = 0; side < 2; ++side) {
        const HopArgs args{side == 0 ? first : second, side == 0 ? second : first, kRounds,
                           side == 0 ? 1U : 0U};
        AFDEP_RETURN_IF_FAILED(backend.launch({.kernel = &kernel,
                                               .grid = 1,
                                               .threads = 32,
                                               .shared_bytes = 0,
                                               .args = &args,
                                               .args_bytes = sizeof(args),
                                               .programmatic = false,
                                               .rank = static_cast<int>(side)},
                                              timers.streams[side]));
      }
      AFDEP_RETURN_IF_FAILED(backend.record(timers.events[1], timers.streams[0]));
      AFDEP_RETURN_IF_FAILED(backend.synchronize_all());
      const auto elapsed = backend.elapsed(timers.events[0], timers.events[1]);
      if (!elapsed.ok()) return elapsed.failure();
      if (repeat >= 0) hops.push_back(microseconds(*elapsed) / (2 * kRounds));
      return {};
    };
    ran = one();
  }
  backend.free(*flags);
  AFDEP_RETURN_IF_FAILED(ran);
  return median(hops);
}

}  // namespace

Result<Calibration> calibrate(Backend& backend) {
  Calibration calibration{.rates = plan::h200_rates(), .measured = false, .why_not = {}};
  calibration.rates.sms = backend.sm_count();
  const auto empty = load(backend, "bench/empty.cu", "afdep_bench_empty");
  const auto flag_hop = load(backend, "bench/flag_hop.cu", "afdep_bench_flag_hop");
  for (const auto* kernel : {&empty, &flag_hop}) {
    if (kernel->ok()) continue;
    calibration.why_not = kernel->diagnostics().front().message;
    return calibration;
  }
  const Result<Timers> timers = Timers::create(backend);
  if (!timers.ok()) return timers.failure();
  const Result<double> plain = measure_gap(backend, *timers, **empty, false);
  if (!plain.ok()) return plain.failure();
  const Result<double> programmatic = measure_gap(backend, *timers, **empty, true);
  if (!programmatic.ok()) return programmatic.failure();
  const Result<double> hop = measure_hop(backend, *timers, **flag_hop);
  if (!hop.ok()) return hop.failure();
  calibration.rates.graph_node_gap_us = *plain;
  calibration.rates.programmatic_gap_us = *programmatic;
  calibration.rates.flag_hop_us = *hop;
  calibration.measured = true;
  return calibration;
}

}  // namespace afdep::cli
