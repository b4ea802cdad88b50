#include "generator/verify/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "generator/plan/critical_path.h"
#include "runtime/support/check.h"

namespace afdep::verify {
namespace {

constexpr std::uint64_t kPacketBytes = 16;
constexpr std::uint64_t kVectorBytes = 16;
constexpr std::uint64_t kWordBytes = 4;

const plan::BucketPlan& bucket_of(const plan::ExchangePlan& plan, int tokens) {
  const auto found = std::ranges::find(plan.buckets, tokens, &plan::BucketPlan::bucket);
  AFDEP_CHECK(found != plan.buckets.end(), fmt::format("the plan has no bucket {}", tokens));
  return *found;
}

const plan::Signal& signal_of(const plan::BucketPlan& bucket, const std::string& name) {
  const auto found = std::ranges::find(bucket.signals, name, &plan::Signal::name);
  AFDEP_CHECK(found != bucket.signals.end(), fmt::format("the bucket has no signal {}", name));
  return *found;
}

const plan::Region& region_of(const plan::RoleLayout& layout, const std::string& name) {
  const auto found = std::ranges::find(layout.window, name, &plan::Region::name);
  AFDEP_CHECK(found != layout.window.end(), fmt::format("the window has no region {}", name));
  return *found;
}

const plan::Kernel& kernel_of(const plan::BucketPlan& bucket, plan::Operation operation) {
  const auto found = std::ranges::find(bucket.kernels, operation, &plan::Kernel::operation);
  AFDEP_CHECK(found != bucket.kernels.end(), "the bucket lacks a kernel");
  return *found;
}

std::uint64_t constant(const plan::Kernel& kernel, const char* name) {
  const auto found = std::ranges::find(kernel.constants, name, &plan::Constant::name);
  AFDEP_CHECK(found != kernel.constants.end(), fmt::format("{} has no {}", kernel.symbol, name));
  return static_cast<std::uint64_t>(found->value);
}

void add_packets(std::uint64_t packets, LinkTraffic& link) {
  link.messages += packets;
  link.packets += packets;
  link.bytes += packets * kPacketBytes;
}

void add_flags(std::uint64_t flags, LinkTraffic& link) {
  link.messages += flags;
  link.flags += flags;
  link.bytes += flags * kWordBytes;
}

// Rows of one direction: as packets, as vectors with a flag a chunk of neighbouring tokens, or one
// bulk copy and a flag a row. A bulk reply is vectors and a flag a row.
class Rows {
 public:
  Rows(const plan::ExchangePlan& plan, const plan::BucketPlan& bucket, const plan::Signal& signal,
       const plan::Kernel& sender)
      : row_bytes_(static_cast<std::uint64_t>(plan.row_bytes)) {
    if (signal.kind == plan::SignalKind::kPacket) {
      // A lane sends three runs of a row as one packet a word of a run.
      const std::uint64_t run = constant(sender, "kRunWords");
      const std::uint64_t words = row_bytes_ / kWordBytes;
      row_packets_ = (words + 3 * run - 1) / (3 * run) * run;
      return;
    }
    row_messages_ = row_bytes_ / kVectorBytes;
    const bool bulk = bucket.protocol == plan::Protocol::kBulk;
    if (bulk && sender.operation == plan::Operation::kDispatch) {
      row_messages_ = 1;
    } else if (!bulk || plan.top_k == 1) {
      chunk_rows_ = constant(sender, "kChunkRows");
    }
  }

  // tokens: those that have a row on this link.
  void add(const std::set<int>& tokens, LinkTraffic& link) const {
    const std::uint64_t rows = tokens.size();
    if (row_packets_ != 0) return add_packets(rows * row_packets_, link);
    std::set<std::uint64_t> chunks;
    for (const int token : tokens) chunks.insert(static_cast<std::uint64_t>(token) / chunk_rows_);
    link.messages += rows * row_messages_;
    link.bytes += rows * row_bytes_;
    add_flags(chunks.size(), link);
  }

 private:
  std::uint64_t row_bytes_;
  std::uint64_t row_packets_ = 0;  // of a row; 0: rows are raw bytes
  std::uint64_t row_messages_ = 0;
  std::uint64_t chunk_rows_ = 1;
};

// What every worker gets from every source, whatever the routes are: an entry for every token of
// the bucket, used or not.
LinkTraffic routes(const plan::ExchangePlan& plan, const plan::BucketPlan& bucket,
                   const plan::Kernel& dispatch) {
  LinkTraffic link;
  const auto tokens = static_cast<std::uint64_t>(bucket.bucket);
  if (bucket.protocol != plan::Protocol::kBulk) {
    const auto entry = static_cast<std::uint64_t>(region_of(plan.ffn, "table").item_bytes);
    add_packets(tokens * entry / kPacketBytes, link);
    return link;
  }
  // Counts of each slice, then its ranked choices: three choices a packet, three weights a packet.
  const auto slices = static_cast<std::uint64_t>(dispatch.grid);
  add_packets(slices * constant(dispatch, "kCountPackets"), link);
  add_packets(tokens * constant(dispatch, "kChoicePackets"), link);
  return link;
}

// What every rank tells every other one, whatever the routes.
void add_meetings(const plan::ExchangePlan& plan, const plan::BucketPlan& bucket,
                  ExchangeTraffic& traffic) {
  const auto each_link = [&](const auto& visit) {
    for (int from = 0; from < plan.ranks(); ++from) {
      for (int to = 0; to < plan.ranks(); ++to) {
        if (from != to) visit(from, to);
      }
    }
  };
  const auto is_source = [&](int rank) {
    const int sources = plan.attention_ranks;
    return plan.ffn_first ? rank >= plan.ranks() - sources : rank < sources;
  };
  for (const plan::Signal& signal : bucket.signals) {
    if (signal.kind == plan::SignalKind::kBarrier) {
      each_link([&](int from, int to) {
        LinkTraffic& link = traffic.links[{from, to}];
        link.messages += 1;
        link.flags += 1;
        link.bytes += kWordBytes;
      });
    } else if (signal.kind == plan::SignalKind::kCounts) {
      const auto packets =
          static_cast<std::uint64_t>(region_of(plan.ffn, signal.flag_region).items);
      // Rows of the first part go from sources to workers, of the second the other way.
      const bool first = signal.name == "no_rows_dispatch";
      each_link([&](int from, int to) {
        const bool rows = is_source(from) == first && is_source(to) != first;
        if (rows) return;
        LinkTraffic& link = traffic.links[{from, to}];
        link.messages += packets;
        link.packets += packets;
        link.bytes += packets * kPacketBytes;
      });
    }
  }
}

}  // namespace

LinkTraffic ExchangeTraffic::total() const {
  LinkTraffic sum;
  for (const auto& [link, traffic] : links) {
    sum.messages += traffic.messages;
    sum.bytes += traffic.bytes;
    sum.packets += traffic.packets;
    sum.flags += traffic.flags;
    sum.done += traffic.done;
  }
  return sum;
}

ExchangeTraffic predict(const plan::ExchangePlan& plan, const ExchangeCase& exchange) {
  const plan::BucketPlan& bucket = bucket_of(plan, exchange.bucket);
  const plan::Kernel& dispatch = kernel_of(bucket, plan::Operation::kDispatch);
  const Rows rows(plan, bucket, signal_of(bucket, "rows"), dispatch);
  const Rows replies(plan, bucket, signal_of(bucket, "replies"),
                     kernel_of(bucket, plan::Operation::kReply));
  const LinkTraffic table = routes(plan, bucket, dispatch);

  ExchangeTraffic traffic;
  bool any_row = false;
  for (int worker = 0; worker < plan.ffn_ranks; ++worker) {
    const int to = plan.world_rank(plan::Role::kFfn, worker);
    std::vector<std::set<int>> tokens(static_cast<std::size_t>(plan.attention_ranks));
    for (const ReceivedRow& row : exchange.received[static_cast<std::size_t>(worker)].rows) {
      tokens[static_cast<std::size_t>(row.source)].insert(row.token);
    }
    for (int source = 0; source < plan.attention_ranks; ++source) {
      const int from = plan.world_rank(plan::Role::kAttention, source);
      const std::set<int>& routed = tokens[static_cast<std::size_t>(source)];
      LinkTraffic& there = traffic.links[{from, to}];
      there = table;
      rows.add(routed, there);
      LinkTraffic& back = traffic.links[{to, from}];
      replies.add(routed, back);
      back.messages += 1;
      back.done += 1;
      back.bytes += kWordBytes;
      any_row |= !routed.empty();
    }
  }
  add_meetings(plan, bucket, traffic);
  // The table is always awaited; without rows nobody replies, and done words are awaited two
  // exchanges on.
  traffic.hops = static_cast<int>(plan::longest_chain(plan, bucket, any_row).size());
  return traffic;
}

std::vector<std::string> differences(const ExchangeTraffic& seen,
                                     const ExchangeTraffic& predicted) {
  std::vector<std::string> lines;
  std::set<std::pair<int, int>> links;
  for (const auto& each : seen.links) links.insert(each.first);
  for (const auto& each : predicted.links) links.insert(each.first);
  const auto of = [](const ExchangeTraffic& traffic, const std::pair<int, int>& link) {
    const auto found = traffic.links.find(link);
    return found == traffic.links.end() ? LinkTraffic{} : found->second;
  };
  for (const auto& link : links) {
    const LinkTraffic here = of(seen, link);
    const LinkTraffic there = of(predicted, link);
    const auto compare = [&](const char* what, std::uint64_t count, std::uint64_t expected) {
      if (count == expected) return;
      lines.push_back(fmt::format("rank {} to rank {}: {} {}, the plan predicts {}", link.first,
                                  link.second, count, what, expected));
    };
    compare("packets", here.packets, there.packets);
    compare("flags", here.flags, there.flags);
    compare("done words", here.done, there.done);
    compare("messages", here.messages, there.messages);
    compare("bytes", here.bytes, there.bytes);
  }
  if (seen.hops != predicted.hops) {
    lines.push_back(
        fmt::format("{} serialized hops, the plan predicts {}", seen.hops, predicted.hops));
  }
  return lines;
}

}  // namespace afdep::verify
