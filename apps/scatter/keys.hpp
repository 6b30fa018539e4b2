// The keys that a histogram counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::apps {

/// A sequence of bins with random access to its parts.
class Keys {
 public:
  virtual ~Keys() = default;
  virtual std::size_t bins() const = 0;
  /// Parts into which the sequence can be divided.
  virtual std::size_t parts() const = 0;
  /// Passes the bins of the parts [first, end) on, some at a time.
  using Sink = std::function<void(std::span<const std::uint64_t>)>;
  virtual void visit(std::size_t first, std::size_t end, const Sink& sink) const = 0;
  virtual std::string describe() const = 0;
};

enum class KeyPattern { stream, random, repeat };

/// Keys that follow from their number and the seed: one after the other, any, or any of 512.
std::unique_ptr<Keys> generate_keys(std::size_t count, std::size_t bins, KeyPattern pattern,
                                    std::uint64_t seed);

/// The words of a text: runs of letters and digits, where case does not matter, by their hash. Or
/// the k-mers of a FASTA file (one that begins with '>'), each with a bin of its own; those with
/// letters other than ACGT do not count. Throws InputError.
std::unique_ptr<Keys> read_keys(const std::string& path, std::size_t bins, std::size_t kmer);

}  // namespace weir::apps
