// Sequences of genes in files: FASTA, compressed or not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/matrix_io.hpp"

namespace weir::apps {

struct Sequence {
  std::string name;   ///< the first word of its heading
  std::string bases;  ///< A, C, G, T, and N for one that is not known
};

/// Reads all sequences of a file; one that is compressed by gzip where the build has zlib. Small
/// letters are taken for large ones. Throws InputError with the path, the line, what was found and
/// what was expected: a file without sequences, a sequence without letters, other letters than A,
/// C, G, T and N, damaged data, and what is larger than the limits.
std::vector<Sequence> read_fasta(const std::string& path, const ReadLimits& limits = {});
/// The same from the bytes of a file; the name stands for the path in messages.
std::vector<Sequence> read_fasta_from(std::string_view bytes, std::string_view name,
                                      const ReadLimits& limits = {});

}  // namespace weir::apps
