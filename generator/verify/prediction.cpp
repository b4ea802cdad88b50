#include "generator/verify/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

// Rows of one direction: as packets, or as vectors with a flag a chunk.
class Rows {
 public:
  Rows(const plan::ExchangePlan& plan, const plan::BucketPlan& bucket, const plan::Signal& signal,
       const plan::Kernel& sender)
      : row_bytes_(static_cast<std::uint64_t>(plan.row_bytes)),
        bulk_(bucket.protocol == plan::Protocol::kBulk) {
    if (signal.kind == plan::SignalKind::kPacket) {
      // A lane sends three runs of a row as one packet a word of a run.
      const std::uint64_t run = constant(sender, "kRunWords");
      const std::uint64_t words = row_bytes_ / kWordBytes;
      row_packets_ = (words + 3 * run - 1) / (3 * run) * run;
    } else {
      chunk_rows_ = static_cast<int>(constant(sender, "kChunkRows"));
    }
  }

  // tokens: those that have a row on this link.
  void add(const std::set<int>& tokens, LinkTraffic& link) const {
    const std::uint64_t rows = tokens.size();
    if (row_packets_ != 0) {
      const std::uint64_t packets = rows * row_packets_;
      link.messages += packets;
      link.packets += packets;
      link.bytes += packets * kPacketBytes;
      return;
    }
    std::set<int> chunks;
    for (const int token : tokens) chunks.insert(token / chunk_rows_);
    link.messages += rows * (bulk_ ? 1 : row_bytes_ / kVectorBytes) + chunks.size();
    link.flags += chunks.size();
    link.bytes += rows * row_bytes_ + chunks.size() * kWordBytes;
  }

 private:
  static std::uint64_t constant(const plan::Kernel& kernel, const char* name) {
    const auto found = std::ranges::find(kernel.constants, name, &plan::Constant::name);
    AFDEP_CHECK(found != kernel.constants.end(), fmt::format("{} has no {}", kernel.symbol, name));
    return static_cast<std::uint64_t>(found->value);
  }

  std::uint64_t row_bytes_;
  std::uint64_t row_packets_ = 0;  // of a row; 0: rows are raw bytes
  bool bulk_;
  int chunk_rows_ = 1;
};

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
  const Rows rows(plan, bucket, signal_of(bucket, "rows"),
                  kernel_of(bucket, plan::Operation::kDispatch));
  const Rows replies(plan, bucket, signal_of(bucket, "replies"),
                     kernel_of(bucket, plan::Operation::kReply));
  // Every worker gets an entry for every token of the bucket, used or not.
  const auto table_packets = static_cast<std::uint64_t>(bucket.bucket) *
                             static_cast<std::uint64_t>(region_of(plan.ffn, "table").item_bytes) /
                             kPacketBytes;

  ExchangeTraffic traffic;
  bool any_token = false;
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
      there.messages += table_packets;
      there.packets += table_packets;
      there.bytes += table_packets * kPacketBytes;
      rows.add(routed, there);
      LinkTraffic& back = traffic.links[{to, from}];
      replies.add(routed, back);
      back.messages += 1;
      back.done += 1;
      back.bytes += kWordBytes;
      any_token = true;
      any_row |= !routed.empty();
    }
  }
  // The table is always awaited; without rows nobody replies, and done words are awaited two
  // exchanges on.
  traffic.hops = any_row ? static_cast<int>(bucket.critical_path.size()) : any_token ? 1 : 0;
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
