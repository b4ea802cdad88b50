// Names of the plan's enumerations, as printed in plan.txt, manifests and messages.
#include "generator/plan/plan.h"
#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

template <typename E>
[[noreturn]] void fail_unnamed(const char* type, E value) {
  fail_check(
      std::string(type) + " out of its enumeration: " + std::to_string(static_cast<int>(value)),
      std::source_location::current());
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kAttention:
      return "attention";
    case Role::kFfn:
      return "ffn";
  }
  fail_unnamed("Role", role);
}

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::kDispatch:
      return "dispatch";
    case Operation::kReceive:
      return "receive";
    case Operation::kReply:
      return "reply";
    case Operation::kCollect:
      return "collect";
    case Operation::kCollectView:
      return "collect_view";
    case Operation::kExpand:
      return "expand";
    case Operation::kReduce:
      return "reduce";
    case Operation::kIdleExpand:
      return "idle_expand";
    case Operation::kIdleReduce:
      return "idle_reduce";
  }
  fail_unnamed("Operation", operation);
}

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::kFlagInData:
      return "flag_in_data";
    case Protocol::kChunked:
      return "chunked";
    case Protocol::kBulk:
      return "bulk";
  }
  fail_unnamed("Protocol", protocol);
}

std::string_view to_string(IdType type) {
  switch (type) {
    case IdType::kInt32:
      return "int32";
    case IdType::kInt64:
      return "int64";
  }
  fail_unnamed("IdType", type);
}

std::string_view to_string(RouteCheck check) {
  switch (check) {
    case RouteCheck::kReport:
      return "report";
    case RouteCheck::kTrap:
      return "trap";
    case RouteCheck::kOff:
      return "off";
  }
  fail_unnamed("RouteCheck", check);
}

std::string_view to_string(Arch arch) {
  switch (arch) {
    case Arch::kSm90a:
      return "sm_90a";
    case Arch::kSm100a:
      return "sm_100a";
  }
  fail_unnamed("Arch", arch);
}

std::string_view to_string(SignalKind kind) {
  switch (kind) {
    case SignalKind::kPacket:
      return "packet";
    case SignalKind::kReleaseFlag:
      return "release_flag";
    case SignalKind::kDoneWord:
      return "done_word";
    case SignalKind::kBarrier:
      return "barrier";
    case SignalKind::kCounts:
      return "counts";
  }
  fail_unnamed("SignalKind", kind);
}

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::kAwaitPreviousKernel:
      return "await_previous_kernel";
    case StepKind::kReleaseNextKernel:
      return "release_next_kernel";
    case StepKind::kAdvanceGeneration:
      return "advance_generation";
    case StepKind::kAwait:
      return "await";
    case StepKind::kPublish:
      return "publish";
    case StepKind::kCompute:
      return "compute";
  }
  fail_unnamed("StepKind", kind);
}

}  // namespace afdep::plan
