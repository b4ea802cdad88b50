#include "runtime/transport/loopback.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "afdep/abi.h"

namespace afdep {
namespace {

// The registration that the n-th call of every rank makes together.
struct Registration {
  int first_rank = 0;  // that called; the others are compared with it
  std::size_t bytes = 0;
  std::vector<Field> fields;
  std::vector<std::uint8_t*> address;
  std::vector<bool> joined;
  std::optional<Failure> failure;  // every rank gets it
  int holders = 0;                 // ranks that have not released it yet
};

class Group {
 public:
  Group(Backend& backend, int size) : backend_(backend), size_(size) {}
  ~Group() {
    for (auto& [number, registration] : registrations_) free_windows(registration);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] int size() const { return size_; }

  Result<Window> join(int rank, std::uint64_t number, std::size_t bytes,
                      std::span<const Field> fields) {
    const std::scoped_lock lock(mutex_);
    const auto [found, is_first] = registrations_.try_emplace(number);
    Registration& registration = found->second;
    if (is_first) {
      registration.first_rank = rank;
      registration.bytes = bytes;
      registration.fields.assign(fields.begin(), fields.end());
      registration.joined.resize(static_cast<std::size_t>(size_));
      // For all ranks at once: no later rank allocates while an earlier one's kernels run.
      if (Result<void> allocated = allocate_windows(registration); !allocated.ok()) {
        registration.failure = allocated.failure();
      }
    } else if (!registration.failure) {
      registration.failure = compare(registration, rank, bytes, fields);
    }
    registration.joined[static_cast<std::size_t>(rank)] = true;
    if (registration.failure) {
      free_unheld(registration);
      return *registration.failure;
    }
    ++registration.holders;
    return Window{number, bytes, registration.address};
  }

  void release(std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    Registration& registration = registrations_.at(number);
    --registration.holders;
    free_unheld(registration);
  }

  Result<void> ready(std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    const Registration& registration = registrations_.at(number);
    if (registration.failure) return *registration.failure;
    std::string missing;
    for (int rank = 0; rank < size_; ++rank) {
      if (registration.joined[static_cast<std::size_t>(rank)]) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (missing.empty()) return {};
    return Failure(
        ErrorCode::kCallOrder,
        fmt::format("the first operation comes before rank {} has created its buffer", missing),
        "create the buffers of all ranks first: creating one waits for running kernels");
  }

 private:
  Result<void> allocate_windows(Registration& registration) {
    for (int rank = 0; rank < size_; ++rank) {
      Result<void*> window = backend_.allocate(registration.bytes);
      if (!window.ok()) {
        free_windows(registration);
        return window.failure();
      }
      registration.address.push_back(static_cast<std::uint8_t*>(*window));
    }
    return {};
  }

  static std::optional<Failure> compare(const Registration& registration, int rank,
                                        std::size_t bytes, std::span<const Field> fields) {
    const auto differ = [&](std::string_view name, const auto& mine, const auto& first) {
      return Failure(ErrorCode::kRanksDisagree,
                     fmt::format("rank {} has {} = {}, rank {} has {}", rank, name, mine,
                                 registration.first_rank, first),
                     "create the buffer from the same bundle and options on every rank");
    };
    if (fields.size() != registration.fields.size()) {
      return differ("number of fields", fields.size(), registration.fields.size());
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& first = registration.fields[i];
      if (fields[i].name != first.name) return differ("field", fields[i].name, first.name);
      if (fields[i].value != first.value) {
        return differ(first.name, fields[i].value, first.value);
      }
    }
    if (bytes != registration.bytes) return differ("window bytes", bytes, registration.bytes);
    return std::nullopt;
  }

  // A peer's kernel may still write into a window whose owner has released it, so all go together,
  // once no rank holds them.
  void free_unheld(Registration& registration) {
    bool all_joined = true;
    for (const bool joined : registration.joined) all_joined = all_joined && joined;
    if (registration.holders == 0 && (all_joined || registration.failure)) {
      free_windows(registration);
    }
  }

  void free_windows(Registration& registration) {
    for (std::uint8_t* window : std::exchange(registration.address, {})) backend_.free(window);
  }

  Backend& backend_;
  int size_;
  std::mutex mutex_;
  std::map<std::uint64_t, Registration> registrations_;
};

class LoopbackCommunicator : public Communicator {
 public:
  LoopbackCommunicator(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size(); }
  [[nodiscard]] Backend& backend() const override { return group_->backend(); }
  [[nodiscard]] int ranks_on_device() const override { return group_->size(); }

  Result<Window> register_window(std::size_t bytes, std::span<const Field> fields) override {
    return group_->join(rank_, next_++, bytes, fields);
  }
  void release_window(const Window& window) override { group_->release(window.number); }
  Result<void> ready(const Window& window) override { return group_->ready(window.number); }

 private:
  std::shared_ptr<Group> group_;
  int rank_;
  std::uint64_t next_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_loopback(Backend& backend, int ranks) {
  AFDEP_CHECK(ranks >= 1 && ranks <= kMaxRanks, "a group of " + std::to_string(ranks) + " ranks");
  const auto group = std::make_shared<Group>(backend, ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<LoopbackCommunicator>(group, rank));
  }
  return communicators;
}

}  // namespace afdep
