#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "state.h"

namespace weir::config {
namespace {

// Chosen: no key of ours is longer, and the distance costs its square.
constexpr size_t kLongestWord = 64;

// Edits (insert, delete, replace, swap neighbours) from one to the other.
// Source: the optimal string alignment distance, row by row.
size_t Distance(std::string_view from, std::string_view to) {
  std::vector<size_t> older(to.size() + 1);
  std::vector<size_t> old(to.size() + 1);
  std::vector<size_t> now(to.size() + 1);
  std::iota(old.begin(), old.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replace = old[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      now[j] = std::min({old[j] + 1, now[j - 1] + 1, replace});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] &&
          from[i - 2] == to[j - 1]) {
        now[j] = std::min(now[j], older[j - 2] + 1);
      }
    }
    older.swap(old);
    old.swap(now);
  }
  return old[to.size()];
}

}  // namespace

std::string JoinPath(std::string_view table, std::string_view key) {
  std::string out(table);
  if (!out.empty()) out += '.';
  return out += key;
}

std::string InTable(std::string_view path) {
  return path.empty() ? "at the top level" : "in `[" + std::string(path) + "]`";
}

std::string_view Nearest(std::string_view word,
                         const std::vector<std::string>& known) {
  std::string_view best;
  if (word.size() > kLongestWord) return best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = Distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string JoinWords(const std::vector<std::string>& words,
                      std::string_view quote, std::string_view last) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? last : ", ";
    out += quote;
    out += words[i];
    out += quote;
  }
  return out;
}

}  // namespace weir::config
