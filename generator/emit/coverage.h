// Which sides of the templates' directives a set of expansions took.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace afdep::emit {

// Taken: the arm's condition held, the else was reached, the loop ran. Not taken: the condition was
// evaluated and did not hold, another arm stood in for the else, the list was empty.
enum class Side : unsigned char { kTaken, kNotTaken };

struct Directive {
  std::string template_path;
  int line = 0;      // 1-based
  std::string text;  // as written, without indentation: "//% if peer.is_local"
  bool is_loop = false;

  friend auto operator<=>(const Directive&, const Directive&) = default;
};

struct MissedSide {
  Directive directive;
  Side side = Side::kTaken;

  friend bool operator==(const MissedSide&, const MissedSide&) = default;
};

// Not thread-safe: one per thread, then merge().
class Coverage {
 public:
  // The directive exists in an expanded template; neither side is taken by this.
  void declare(const Directive& directive);
  void record(const Directive& directive, Side side);
  void merge(const Coverage& other);

  // Sides never taken, ordered by template and line. A loop whose list was never empty is listed,
  // as its kNotTaken side; a caller for whom that list cannot be empty leaves it out by is_loop.
  [[nodiscard]] std::vector<MissedSide> missed() const;

 private:
  struct Sides {
    bool taken = false;
    bool not_taken = false;
  };
  std::map<Directive, Sides> directives_;
};

// "kernels/dispatch.cu.in:12: never taken: //% if has_table"; for the other side "never skipped",
// for a loop "never ran" and "never empty".
std::string to_string(const MissedSide& missed);

}  // namespace afdep::emit
