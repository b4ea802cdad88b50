#include "generator/spec/supported.h"

#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "generator/spec/names.h"
#include "generator/spec/resolve.h"
#include "generator/spec/rules.h"
#include "generator/spec/sink.h"

namespace afdep::spec {
namespace {

// "a, b or c".
std::string alternatives(std::span<const std::string_view> texts) {
  if (texts.size() == 1) return std::string(texts.front());
  return fmt::format("{} or {}", join(texts.first(texts.size() - 1)), texts.back());
}

class ServedCheck {
 public:
  explicit ServedCheck(const Spec& spec) : spec_(spec) {}

  Diagnostics run() {
    check_topology();
    check_formats_served();
    check_receive_and_placement();
    check_kernel();
    check_rest();
    return sink_.take();
  }

 private:
  void refuse(Place place, std::string_view what, std::string note) {
    // A value that no key gave (a sum of defaults, say) is a matter of the whole file.
    if (place.line == 0) place = {spec_.file, 1, 1};
    sink_.add(ErrorCode::kUnsupported, std::move(place),
              fmt::format("{} is not supported by this build", what), std::move(note));
  }

  template <typename E>
  void serve_only(const Field<E>& field, std::string_view path, std::initializer_list<E> served) {
    std::vector<std::string_view> texts;
    for (const E value : served) {
      if (field.value == value) return;
      texts.push_back(to_name(value));
    }
    refuse(field.place, fmt::format("{} = {}", path, to_name(field.value)),
           fmt::format("use {}", alternatives(texts)));
  }

  void serve_only_false(const Field<bool>& field, std::string_view path) {
    if (field.value) refuse(field.place, fmt::format("{} = true", path), "use false");
  }

  void check_topology() {
    const TopologySpec& topology = spec_.topology;
    serve_only(topology.roles, "topology.roles", {Roles::kDisjoint});
    serve_only(topology.transport, "topology.transport",
               {Transport::kAuto, Transport::kLsa, Transport::kLoopback});
    const int ranks = attention_ranks(spec_) + ffn_ranks(spec_);
    if (ranks > kServedRanks) {
      refuse(topology.ratio.given ? topology.ratio.place : topology.attention_ranks.place,
             fmt::format("a topology of {} ranks", ranks),
             fmt::format("use {} ranks at most", kServedRanks));
    }
    if (const long long domains = domain_count(spec_); domains > 1) {
      refuse(topology.domains.place, fmt::format("topology.domains with {} domains", domains),
             "use one NVLink domain: remove the key");
    }
  }

  void check_formats_served() {
    serve_only(spec_.dispatch_dtype, "dispatch.dtype", {DispatchDtype::kBf16});
    serve_only(spec_.dispatch_quantize, "dispatch.quantize", {Quantize::kCaller});
    serve_only(spec_.reply_dtype, "reply.dtype", {ReplyDtype::kBf16});
    serve_only_false(spec_.reply_allow_lossy, "reply.allow_lossy");
    serve_only(spec_.weights_applied_by, "weights.applied_by", {AppliedBy::kFfn});
  }

  void check_receive_and_placement() {
    serve_only(spec_.receive_layout, "receive.layout", {ReceiveLayout::kExpertMajor});
    serve_only(spec_.placement.kind, "placement.kind", {PlacementKind::kContiguous});
    if (const int redundant = redundant_experts(spec_); redundant > 0) {
      refuse(spec_.placement.redundant_experts.place,
             fmt::format("placement.redundant_experts = {}", redundant),
             "use 0 and a number of FFN ranks that divides model.num_experts");
    }
    serve_only(spec_.shared_experts_mode, "shared_experts.mode",
               {SharedMode::kLocal, SharedMode::kNone});
  }

  void check_kernel() {
    if (spec_.microbatches.value > 1) {
      refuse(spec_.microbatches.place,
             fmt::format("pipeline.microbatches = {}", spec_.microbatches.value),
             "use 1; independent exchanges need a buffer each");
    }
  }

  void check_rest() {
    serve_only_false(spec_.stats_cost, "stats.cost");
    serve_only_false(spec_.stats_expert_counts, "stats.expert_counts");
  }

  const Spec& spec_;
  Sink sink_;
};

}  // namespace

Diagnostics unsupported(const Spec& spec) { return ServedCheck(spec).run(); }

}  // namespace afdep::spec
