#include "common/fasta.hpp"

#include <algorithm>
#include <cstdint>

#if defined(WEIR_APPS_ZLIB)
#define ZLIB_CONST
#include <zlib.h>
#endif

#include "common/file.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

constexpr std::string_view kGzipMagic = "\x1f\x8b";

#if defined(WEIR_APPS_ZLIB)
/// Inflates one member after the other.
class Inflater {
 public:
  Inflater(std::string_view bytes, std::string_view name) : name_(name) {
    stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    left_ = bytes.size();
    constexpr int kGzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) fail_input("{}: no memory left", name);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  std::string all(const ReadLimits& limits) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    std::string text;
    while (left_ > 0 || inside_) {
      const std::size_t before = text.size();
      if (before > limits.bytes) {
        fail_input("{}: found more than {} bytes when unpacked, expected at most that many", name_,
                   limits.bytes);
      }
      text.resize(before + kPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
      stream_.avail_out = kPiece;
      step();
      text.resize(before + kPiece - stream_.avail_out);
    }
    return text;
  }

 private:
  void step() {
    const auto given = static_cast<uInt>(std::min<std::size_t>(left_, UINT32_MAX));
    stream_.avail_in = given;
    inside_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const bool stuck =
        result == Z_BUF_ERROR || (result == Z_OK && given == 0 && stream_.avail_out > 0);
    left_ -= given - stream_.avail_in;
    if (stuck) fail_input("{}: damaged gzip data: the file is cut", name_);
    if (result == Z_STREAM_END) {
      inside_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK) {
      fail_input("{}: damaged gzip data: {}", name_,
                 stream_.msg != nullptr ? stream_.msg : "it cannot be unpacked");
    }
  }

  const std::string_view name_;
  z_stream stream_ = {};
  std::size_t left_ = 0;
  bool inside_ = false;  ///< of a member
};

std::string unpack(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return Inflater(bytes, name).all(limits);
}
#else
std::string unpack(std::string_view, std::string_view name, const ReadLimits&) {
  fail_input("{}: this build reads no gzip: install zlib1g-dev and build again, or unpack it",
             name);
}
#endif

char base_of(char letter) {
  constexpr char kCase = 'a' - 'A';
  const char large = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - kCase) : letter;
  return std::string_view("ACGTN").find(large) != std::string_view::npos ? large : '\0';
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::vector<Sequence> all() {
    while (!text_.empty()) {
      ++line_;
      const std::size_t length = std::min(text_.find('\n'), text_.size());
      read(text_.substr(0, length));
      text_.remove_prefix(std::min(length + 1, text_.size()));
    }
    if (sequences_.empty())
      fail_input("{}: found no sequence, expected a line that begins with >", name_);
    check_last();
    return std::move(sequences_);
  }

 private:
  void read(std::string_view line) {
    while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
    if (line.empty()) return;
    if (line.front() == '>') {
      check_last();
      line.remove_prefix(1);
      sequences_.push_back({std::string(line.substr(0, line.find_first_of(" \t"))), {}});
      if (sequences_.back().name.empty()) {
        fail_input("{}:{}: found a sequence without a name, expected one after >", name_, line_);
      }
      return;
    }
    if (sequences_.empty()) {
      fail_input("{}:{}: found {}, expected a line that begins with >", name_, line_,
                 in_quotes(line));
    }
    std::string& bases = sequences_.back().bases;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char base = base_of(line[i]);
      if (base == '\0') {
        fail_input("{}:{}: found {} in column {}, expected A, C, G, T or N", name_, line_,
                   in_quotes(line.substr(i, 1)), i + 1);
      }
      bases += base;
    }
  }

  void check_last() const {
    if (sequences_.empty() || !sequences_.back().bases.empty()) return;
    fail_input("{}:{}: found no letters of sequence {}, expected some", name_, line_,
               in_quotes(sequences_.back().name));
  }

  std::string_view text_;
  const std::string_view name_;
  std::size_t line_ = 0;
  std::vector<Sequence> sequences_;
};

}  // namespace

std::vector<Sequence> read_fasta_from(std::string_view bytes, std::string_view name,
                                      const ReadLimits& limits) {
  if (bytes.starts_with(kGzipMagic)) {
    const std::string text = unpack(bytes, name, limits);
    return Reader(text, name).all();
  }
  check_size(std::string(name), {bytes.size(), 1}, 1, limits);
  return Reader(bytes, name).all();
}

std::vector<Sequence> read_fasta(const std::string& path, const ReadLimits& limits) {
  const MappedFile file(path);
  return read_fasta_from(file.bytes(), path, limits);
}

}  // namespace weir::apps
