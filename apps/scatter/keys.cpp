#include "scatter/keys.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "common/file.hpp"
#include "common/input_error.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kKeysAtOnce = 1024;
constexpr std::size_t kRepeated = 512;

/// Collects bins and passes them on.
class Batch {
 public:
  explicit Batch(const Keys::Sink& sink) : sink_(sink) {}
  void add(std::uint64_t bin) {
    bins_[count_++] = bin;
    if (count_ == kKeysAtOnce) flush();
  }
  void flush() {
    if (count_ > 0) sink_({bins_.data(), count_});
    count_ = 0;
  }

 private:
  const Keys::Sink& sink_;
  std::array<std::uint64_t, kKeysAtOnce> bins_;
  std::size_t count_ = 0;
};

/// A bijection that leaves no trace of the order (the finaliser of SplitMix64).
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class GeneratedKeys final : public Keys {
 public:
  GeneratedKeys(std::size_t count, std::size_t bins, KeyPattern pattern, std::uint64_t seed)
      : count_(count), bins_(bins), pattern_(pattern), seed_(seed) {}

  std::size_t bins() const override { return bins_; }
  std::size_t parts() const override { return count_; }

  void visit(std::size_t first, std::size_t end, const Sink& sink) const override {
    Batch batch(sink);
    for (std::size_t at = first; at < end; ++at) batch.add(bin(at));
    batch.flush();
  }

  std::string describe() const override {
    constexpr std::array kNames = {"stream", "random", "repeat"};
    return kNames[static_cast<std::size_t>(pattern_)];
  }

 private:
  std::uint64_t bin(std::uint64_t at) const noexcept {
    if (pattern_ == KeyPattern::stream) return at % bins_;
    constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
    const std::uint64_t drawn = mix((seed_ + 1) * kStep + at * kStep);
    if (pattern_ == KeyPattern::random) return drawn % bins_;
    return mix(drawn % kRepeated + seed_) % bins_;
  }

  std::size_t count_, bins_;
  KeyPattern pattern_;
  std::uint64_t seed_;
};

/// A part is a piece of the file of this size; a key belongs to the piece that it begins in.
constexpr std::size_t kPiece = 4096;

class FileKeys : public Keys {
 public:
  explicit FileKeys(const std::string& path) : file_(path), text_(file_.bytes()) {}
  std::size_t parts() const override { return (text_.size() + kPiece - 1) / kPiece; }

 private:
  MappedFile file_;

 protected:
  const std::string_view text_;
};

class Words final : public FileKeys {
 public:
  Words(const std::string& path, std::size_t bins) : FileKeys(path), bins_(bins) {}

  std::size_t bins() const override { return bins_; }
  std::string describe() const override { return "words"; }

  void visit(std::size_t first, std::size_t end, const Sink& sink) const override {
    Batch batch(sink);
    std::size_t at = first * kPiece;
    const std::size_t stop = std::min(end * kPiece, text_.size());
    while (at > 0 && at < stop && is_letter(text_[at - 1]) && is_letter(text_[at])) ++at;
    while (at < stop) {
      if (!is_letter(text_[at])) {
        ++at;
        continue;
      }
      std::uint64_t hash = 0;
      for (; at < text_.size() && is_letter(text_[at]); ++at) {
        hash = mix(hash * 257 + lower(text_[at]));
      }
      batch.add(hash % bins_);
    }
    batch.flush();
  }

 private:
  /// Bytes of longer characters count as letters, too.
  static bool is_letter(char byte) noexcept {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || (static_cast<unsigned char>(byte) & 0x80u) != 0;
  }
  static unsigned char lower(char byte) noexcept {
    const auto value = static_cast<unsigned char>(byte);
    return byte >= 'A' && byte <= 'Z' ? static_cast<unsigned char>(value + 32) : value;
  }

  std::size_t bins_;
};

/// A part is a base that a k-mer may begin with.
class Kmers final : public FileKeys {
 public:
  Kmers(const std::string& path, std::size_t kmer) : FileKeys(path), kmer_(kmer) {
    bool header = false;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      if (text_[at] == '>' && (at == 0 || text_[at - 1] == '\n')) {
        header = true;
        bases_.push_back(kNone);
      } else if (text_[at] == '\n') {
        header = false;
      } else if (!header && text_[at] != '\r') {
        bases_.push_back(code(text_[at]));
      }
    }
    const auto known = std::count_if(bases_.begin(), bases_.end(),
                                     [](std::uint8_t base) { return base != kNone; });
    if (static_cast<std::size_t>(known) < kmer) {
      fail_input("{}: found {} bases, expected at least {}", path, known, kmer);
    }
  }

  std::size_t bins() const override { return std::size_t{1} << (2 * kmer_); }
  std::size_t parts() const override { return bases_.size() - kmer_ + 1; }
  std::string describe() const override { return fmt::format("{}-mers", kmer_); }

  void visit(std::size_t first, std::size_t end, const Sink& sink) const override {
    Batch batch(sink);
    std::uint64_t bin = 0;
    std::size_t valid = 0;
    for (std::size_t at = first; at < end + kmer_ - 1; ++at) {
      valid = bases_[at] == kNone ? 0 : valid + 1;
      bin = (bin << 2 | (bases_[at] & 3u)) & (bins() - 1);
      if (valid >= kmer_) batch.add(bin);
    }
    batch.flush();
  }

 private:
  static constexpr std::uint8_t kNone = 4;

  static std::uint8_t code(char base) noexcept {
    switch (base) {
      case 'A':
      case 'a': return 0;
      case 'C':
      case 'c': return 1;
      case 'G':
      case 'g': return 2;
      case 'T':
      case 't': return 3;
      default: return kNone;
    }
  }

  std::size_t kmer_;
  std::vector<std::uint8_t> bases_;
};

}  // namespace

std::unique_ptr<Keys> generate_keys(std::size_t count, std::size_t bins, KeyPattern pattern,
                                    std::uint64_t seed) {
  return std::make_unique<GeneratedKeys>(count, bins, pattern, seed);
}

std::unique_ptr<Keys> read_keys(const std::string& path, std::size_t bins, std::size_t kmer) {
  const MappedFile file(path);
  if (file.bytes().empty()) fail_input("{}: is empty: expected a text or sequences", path);
  if (file.bytes().starts_with("\x1f\x8b")) {
    fail_input("{}: found what gzip has packed, expected a text or sequences: unpack it", path);
  }
  if (file.bytes().front() == '>') return std::make_unique<Kmers>(path, kmer);
  return std::make_unique<Words>(path, bins);
}

}  // namespace weir::apps
