// How the ranks of a group find each other's memory and agree on what they run. One object per
// rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/support/result.h"

namespace afdep {

// Something that must be equal on every rank.
struct Field {
  std::string name;
  std::string value;
};

// Memory of every rank that the kernels of every rank may address.
struct Window {
  std::uint64_t number = 0;            // of the registration, counted alike by every rank
  std::size_t bytes = 0;               // equal on every rank
  std::vector<std::uint8_t*> address;  // by world rank
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;  // world rank
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual Backend& backend() const = 0;
  // Ranks whose kernels share this rank's GPU, itself included: they must all be resident at once.
  [[nodiscard]] virtual int ranks_on_device() const = 0;

  // Collective: the n-th call of every rank belongs together; may block until every rank has
  // called. Compares `fields` and `bytes` over the ranks (kRanksDisagree, naming rank and field, on
  // every rank), then gives every rank a zeroed window.
  virtual Result<Window> register_window(std::size_t bytes, std::span<const Field> fields) = 0;
  // Every rank releases its windows; the memory goes when no rank can reach it any more.
  virtual void release_window(const Window& window) = 0;
  // To be asked before the first kernel that uses the window: fails unless every rank has
  // registered it and prepared its part.
  virtual Result<void> ready(const Window& window) = 0;
};

}  // namespace afdep
