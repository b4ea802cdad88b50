// A value, or the diagnostics that say why there is none.
#pragma once

#include <utility>
#include <variant>

#include "runtime/support/check.h"
#include "runtime/support/diagnostic.h"

namespace afdep {

// The diagnostics of a failed operation; converts to any Result<T>.
struct [[nodiscard]] Failure {
  Diagnostics diagnostics;

  explicit Failure(Diagnostics all) : diagnostics(std::move(all)) {}
  explicit Failure(Diagnostic one) { diagnostics.push_back(std::move(one)); }
  // A failure that concerns no place in a file.
  Failure(ErrorCode code, std::string message, std::string note = {}) {
    diagnostics.push_back({code, {}, std::move(message), std::move(note)});
  }
};

// A successful Result<void> or Result<T> never allocates by itself, so it may be used on the
// enqueue path.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Both convert implicitly, so that functions may return a value or a failure.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Precondition of the four accessors: ok(). Of failure() and diagnostics(): !ok().
  T& value() & { return get(); }
  const T& value() const& { return const_cast<Result*>(this)->get(); }
  T&& value() && { return std::move(get()); }
  T& operator*() & { return get(); }
  const T& operator*() const& { return const_cast<Result*>(this)->get(); }
  T&& operator*() && { return std::move(get()); }
  T* operator->() { return &get(); }
  const T* operator->() const { return &const_cast<Result*>(this)->get(); }

  [[nodiscard]] const Failure& failure() const {
    AFDEP_CHECK(!ok(), "a successful result has no failure");
    return std::get<1>(state_);
  }
  [[nodiscard]] const Diagnostics& diagnostics() const { return failure().diagnostics; }

 private:
  T& get() {
    AFDEP_CHECK(ok(), "value() of a failed result: " + to_string(std::get<1>(state_).diagnostics));
    return std::get<0>(state_);
  }
  std::variant<T, Failure> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure)  // NOLINT(google-explicit-constructor)
      : failure_(std::move(failure)), ok_(false) {}

  [[nodiscard]] bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  [[nodiscard]] const Failure& failure() const {
    AFDEP_CHECK(!ok_, "a successful result has no failure");
    return failure_;
  }
  [[nodiscard]] const Diagnostics& diagnostics() const { return failure().diagnostics; }

 private:
  Failure failure_{Diagnostics{}};
  bool ok_ = true;
};

}  // namespace afdep

// Returns the failure of `expr` (a Result) from the enclosing function; otherwise goes on.
#define AFDEP_RETURN_IF_FAILED(expr)                                           \
  do {                                                                         \
    if (const auto& result_ = (expr); !result_.ok()) return result_.failure(); \
  } while (false)
