#include "gene_alignment/gene_alignment.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/command_options.hpp"
#include "common/fasta.hpp"
#include "common/file.hpp"
#include "common/input_error.hpp"
#include "common/parsing.hpp"
#include "common/pipeline_workload.hpp"
#include "gene_alignment/alignment.hpp"
#include "gene_alignment/planted_genes.hpp"
#include "gene_alignment/word_kernel.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kUsualQuery = 1024, kMostQuery = 16384, kMostChunk = std::size_t{1} << 24;

struct Sequences {
  std::vector<Sequence> targets, queries;
  std::vector<PlantedGene> planted;  ///< of the only target, by query; none: it was read
  std::string origin;                ///< of the generated input, as text
};

/// Positions of a target at which a query is looked for.
struct Positions {
  std::uint32_t query, target;
  std::uint64_t first;
};
/// One at which it was found.
struct Hit {
  std::uint32_t query, target;
  std::uint64_t position;
};
struct Found {
  Hit hit;
  Alignment alignment;
};

/// Memory for alignments that are not yet written: items of tunnels are only bytes.
class FoundPool {
 public:
  std::uint32_t take(Found found) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    places_[place] = std::move(found);
    return place;
  }
  Found give(std::uint32_t place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(place);
    return std::move(places_[place]);
  }
  /// How many it held at once.
  std::size_t most() const noexcept { return places_.size(); }
  void clear() {
    places_.clear();
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::deque<Found> places_;
  std::vector<std::uint32_t> free_;
};

/// Writes alignments as lines, and counts them.
class Writer {
 public:
  Writer(const std::string& path, const Sequences& sequences)
      : sequences_(sequences), best_of_(sequences.queries.size()) {
    if (path.empty()) return;
    sam_ = path.ends_with(".sam");
    file_ = std::make_unique<OutputFile>(path);
    write(header());
  }

  void add(const Found& found) {
    const Alignment& at = found.alignment;
    ++count_;
    best_ = std::max(best_, at.score);
    Best& best = best_of_[found.hit.query];
    if (at.score > best.score) {
      best = {at.score, found.hit.position + at.begin, found.hit.position + at.end};
    }
    for (const char c : text_of(found)) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kPrime;
    if (file_ != nullptr) write(sam_ ? sam_of(found) : text_of(found));
    known_ = found.hit.query + std::size_t{1};
  }
  void commit() {
    if (file_ != nullptr) file_->commit();
  }

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t hash() const noexcept { return hash_; }
  int best() const noexcept { return count_ > 0 ? best_ : 0; }
  /// Genes whose best alignment has more than half of the letters that were put there.
  std::size_t planted_genes_found() const noexcept {
    std::size_t found = 0;
    for (std::size_t i = 0; i < sequences_.planted.size(); ++i) {
      const PlantedGene& gene = sequences_.planted[i];
      const std::size_t begin = std::max(best_of_[i].begin, gene.begin);
      const std::size_t end = std::min(best_of_[i].end, gene.end);
      found += end > begin && 2 * (end - begin) > gene.end - gene.begin;
    }
    return found;
  }

 private:
  /// The best alignment of a query, letters [begin, end) of its target.
  struct Best {
    int score = std::numeric_limits<int>::min();
    std::size_t begin = 0, end = 0;
  };

  static constexpr std::uint64_t kPrime = 0x100000001b3;

  std::string header() const {
    if (!sam_) return "query\ttarget\thit\tscore\tbegin\tend\tedits\tcigar\n";
    std::string text = "@HD\tVN:1.6\tSO:unknown\n";
    for (const Sequence& target : sequences_.targets) {
      text += fmt::format("@SQ\tSN:{}\tLN:{}\n", target.name, target.bases.size());
    }
    return text + "@PG\tID:weir\tPN:weir\n";
  }
  /// Positions are counted from 0.
  std::string text_of(const Found& found) const {
    const auto& [hit, at] = found;
    return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", sequences_.queries[hit.query].name,
                       sequences_.targets[hit.target].name, hit.position, at.score,
                       hit.position + at.begin, hit.position + at.end, at.edits, at.cigar);
  }
  /// The first of a query has its letters, the others are marked as further ones.
  std::string sam_of(const Found& found) const {
    constexpr int kFurther = 256;
    const auto& [hit, at] = found;
    const Sequence& query = sequences_.queries[hit.query];
    const bool further = known_ == hit.query + std::size_t{1};
    return fmt::format("{}\t{}\t{}\t{}\t255\t{}\t*\t0\t0\t{}\t*\tAS:i:{}\tNM:i:{}\n", query.name,
                       further ? kFurther : 0, sequences_.targets[hit.target].name,
                       hit.position + at.begin + 1, at.cigar, further ? "*" : query.bases, at.score,
                       at.edits);
  }
  void write(const std::string& text) { file_->append(text); }

  const Sequences& sequences_;
  bool sam_ = false;
  std::unique_ptr<OutputFile> file_;
  std::size_t known_ = 0;      ///< the query of the line before, counted from 1
  std::vector<Best> best_of_;  ///< by query
  std::uint64_t count_ = 0, hash_ = 0xcbf29ce484222325;
  int best_ = std::numeric_limits<int>::min();
};

// What an item takes a core of an AMD EPYC, in virtual time that of a simulated host.
constexpr double kPositionNs = 5.3, kFineNs = 135'000, kWriteNs = 600, kCutNs = 30;

class GeneAlignment final : public PipelineWorkload {
 public:
  GeneAlignment(std::string output, Sequences sequences, std::size_t chunk,
                const PipelineSwitches& switches, const weir::Runtime& runtime,
                const AppStreams& app_streams)
      : PipelineWorkload(runtime, app_streams, "gene-alignment", switches,
                         StagePlaces::hosts_and_device),
        output_(std::move(output)),
        sequences_(std::move(sequences)),
        chunk_(chunk),
        scratch_(workers()) {
    for (const Sequence& query : sequences_.queries) seeds_.emplace_back(query.bases);
    if (device() == nullptr) return;
    words_ = load_words(runtime, seeds_);
    coarse_on_device_ = word_stage(runtime, words_);
  }

  /// Letters of all targets.
  std::size_t n() const override {
    std::size_t letters = 0;
    for (const Sequence& target : sequences_.targets) letters += target.bases.size();
    return letters;
  }

  void save() const override { writer_->commit(); }
  std::vector<Figure> figures() const override {
    std::vector<Figure> figures = {{"alignments", static_cast<double>(writer_->count())},
                                   {"best score", static_cast<double>(writer_->best())}};
    if (!sequences_.planted.empty()) {
      figures.push_back({"genes found", static_cast<double>(writer_->planted_genes_found())});
    }
    return figures;
  }
  std::vector<std::pair<std::string, std::string>> remarks() const override {
    auto remarks = PipelineWorkload::remarks();
    if (!sequences_.origin.empty()) remarks.insert(remarks.begin(), {"input", sequences_.origin});
    return remarks;
  }

  /// Looks for words letter by letter, and scores from the other end.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    Writer again("", sequences_);
    std::size_t wrong = 0;
    std::vector<std::uint8_t> scratch;
    for_all_positions([&](const Positions& positions) {
      for (std::size_t p = positions.first; p < end_of(positions); ++p) {
        const Hit hit{positions.query, positions.target, p};
        if (!shares_word(hit)) continue;
        const Found found{hit, align(query_of(hit), window_of(hit), scratch)};
        wrong += found.alignment.score != score_from_the_end(query_of(hit), window_of(hit));
        again.add(found);
      }
      return true;
    });
    std::vector<Verification> checks = {
        {"alignments too many, too few or different",
         again.hash() == writer_->hash() && again.count() == writer_->count() ? 0.0 : 1.0, 0},
        {"scores that differ from the other end", static_cast<double>(wrong), 0}};
    const std::size_t planted = sequences_.planted.size();
    if (planted > 0) {
      checks.push_back({"genes that were not found where they are",
                        static_cast<double>(planted - writer_->planted_genes_found()), 0});
    }
    return checks;
  }

 private:
  std::string_view query_of(const Hit& hit) const { return sequences_.queries[hit.query].bases; }
  std::string_view target_of(std::uint32_t target) const {
    return sequences_.targets[target].bases;
  }
  /// As much of the target as the query has letters.
  std::string_view window_of(const Hit& hit) const {
    return target_of(hit.target).substr(hit.position, query_of(hit).size());
  }
  std::size_t end_of(const Positions& positions) const {
    const std::size_t letters = target_of(positions.target).size();
    return std::min(positions.first + chunk_, letters < kSeed ? 0 : letters - kSeed + 1);
  }
  /// In the order of the output, until visit returns false.
  template <class Visit>
  void for_all_positions(const Visit& visit) const {
    Positions next{0, 0, 0};
    do {
      if (!visit(next)) return;
    } while (advance(next));
  }
  bool advance(Positions& positions) const {
    positions.first += chunk_;
    if (positions.first < target_of(positions.target).size()) return true;
    positions.first = 0;
    if (++positions.target < sequences_.targets.size()) return true;
    positions.target = 0;
    return ++positions.query < sequences_.queries.size();
  }

  bool shares_word(const Hit& hit) const {
    const std::string_view word = target_of(hit.target).substr(hit.position, kSeed);
    return all_known(word) && query_of(hit).find(word) != std::string_view::npos;
  }

  template <class Out>
  void observe(const Positions& positions, std::size_t first, std::size_t end,
               const Out& out) const {
    seeds_[positions.query].find(target_of(positions.target), first, end, [&](std::size_t p) {
      out.put({positions.query, positions.target, p});
    });
  }
  /// Puts the letters of some positions in the blocks that the device kernel reads.
  template <class Out>
  void cut(const Positions& at, const Out& out) const {
    const std::string_view target = target_of(at.target);
    for (std::size_t first = at.first, end = end_of(at); first < end; first += LetterBlock::kMost) {
      const std::size_t count = std::min(LetterBlock::kMost, end - first);
      LetterBlock block{at.query, at.target, first, static_cast<std::uint32_t>(count), {}};
      target.copy(block.letters.data(), count + kSeed - 1, first);
      out.put(block);
    }
  }
  template <class Out>
  void put_hits(const MarkedBlock& block, const Out& out) const {
    for (std::size_t i = 0; i < block.marks.size(); ++i) {
      for (std::uint32_t marks = block.marks[i]; marks != 0; marks &= marks - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(marks));
        const std::size_t position = block.first + 32 * i + bit;
        if (!all_known(target_of(block.target).substr(position, kSeed))) continue;
        out.put({block.query, block.target, position});
      }
    }
  }
  Found fit(const Hit& hit, std::size_t worker) {
    return {hit, align(query_of(hit), window_of(hit), scratch_[worker])};
  }

  void clear() override {
    found_pool_.clear();
    writer_ = std::make_unique<Writer>(output_, sequences_);
  }

  void connect(const weir::Pipeline& pipeline) override {
    const auto positions = pipeline.tunnel<Positions>("positions");
    const auto hits = pipeline.tunnel<Hit>("hits");
    const auto lines = pipeline.tunnel<std::uint32_t>("lines");
    pipeline.source("reader", weir::into(positions),
                    [this, next = Positions{0, 0, 0}](const weir::Outlet<Positions>& out) mutable {
                      out.put(next);
                      return advance(next);
                    });
    weir::StageOptions fine = at(1, kFineNs), alone = at(2, kWriteNs);
    fine.ordered = true;
    alone.workers = 1;
    connect_coarse(pipeline, positions, hits);
    pipeline.stage(
        "fine", hits, weir::into(lines),
        [this](const Hit& hit, const weir::Outlet<std::uint32_t>& out, weir::StageContext context) {
          out.put(found_pool_.take(fit(hit, context.worker())));
        },
        fine);
    pipeline.stage(
        "write", lines, [this](std::uint32_t line) { writer_->add(found_pool_.give(line)); },
        alone);
  }

  /// The host finds words itself, or cuts letters into blocks for the device.
  void connect_coarse(const weir::Pipeline& pipeline, const weir::Tunnel<Positions>& positions,
                      const weir::Tunnel<Hit>& hits) {
    weir::StageOptions ordered = at(0, kPositionNs * static_cast<double>(chunk_));
    ordered.ordered = true;
    if (!coarse_on_device_) {
      return pipeline.stage(
          "coarse", positions, weir::into(hits),
          [this](const Positions& at, const weir::Outlet<Hit>& out) {
            observe(at, at.first, end_of(at), out);
          },
          ordered);
    }
    ordered.item_ns = kCutNs;
    const auto blocks = pipeline.tunnel<LetterBlock>("blocks");
    const auto marked = pipeline.tunnel<MarkedBlock>("marked blocks");
    pipeline.stage(
        "cut", positions, weir::into(blocks),
        [this](const Positions& at, const weir::Outlet<LetterBlock>& out) { cut(at, out); },
        ordered);
    connect_kernel(pipeline, "coarse", blocks, marked, *coarse_on_device_);
    pipeline.stage(
        "hits", marked, weir::into(hits),
        [this](const MarkedBlock& block, const weir::Outlet<Hit>& out) { put_hits(block, out); },
        ordered);
  }

  void launch_coarse(ChunkLoop& chunks, const Positions& at) const {
    std::vector<LetterBlock> blocks;
    cut(at, ChunkOutlet(blocks));
    chunks.work(blocks.size(), kCutNs);
    chunks.launch("coarse", *coarse_on_device_, blocks);
  }
  /// The hits of a chunk, in their order.
  std::vector<Hit> coarse(ChunkLoop& chunks, const Positions& at) const {
    if (coarse_on_device_) {
      const auto marked = chunks.results<MarkedBlock>("coarse", *coarse_on_device_);
      std::vector<Hit> hits;
      for (const MarkedBlock& block : marked) put_hits(block, ChunkOutlet(hits));
      chunks.work(marked.size(), kCutNs);
      return hits;
    }
    Collected<Hit> found(chunks.parts());
    const std::size_t end = end_of(at);
    chunks.run("coarse", end > at.first ? end - at.first : 0, kPositionNs,
               [&](const ChunkPart& part) {
                 observe(at, at.first + part.first, at.first + part.end, found.outlet(part));
               });
    return found.take();
  }

  /// The device marks the words of one chunk while the cores fit the hits of another.
  void loop(ChunkLoop& chunks) override {
    std::vector<Positions> positions;
    for_all_positions([&](const Positions& at) {
      positions.push_back(at);
      return true;
    });
    const auto begin = [&](std::size_t i) {
      if (coarse_on_device_) launch_coarse(chunks, positions[i]);
    };
    const auto end = [&](std::size_t i) {
      const std::vector<Hit> hits = coarse(chunks, positions[i]);
      std::vector<Found> fitted(hits.size());
      chunks.run("fine", hits.size(), kFineNs, [&](const ChunkPart& part) {
        for (std::size_t k = part.first; k < part.end; ++k) fitted[k] = fit(hits[k], part.index);
      });
      for (const Found& each : fitted) writer_->add(each);
      chunks.work(fitted.size(), kWriteNs);
    };
    chunks.each_chunk(positions.size(), coarse_on_device_.has_value(), begin, end);
  }

  void describe(nlohmann::ordered_json& json) const override {
    json["hash"] = fmt::format("{:016x}", writer_->hash());
    if (!baseline()) json["shelf"] = found_pool_.most();
  }

  const std::string output_;
  const Sequences sequences_;
  const std::size_t chunk_;
  std::vector<SeedSet> seeds_;  ///< of the queries
  weir::Buffer words_;          ///< the same for a device
  std::optional<DeviceStage> coarse_on_device_;
  std::vector<std::vector<std::uint8_t>> scratch_;  ///< of the workers
  FoundPool found_pool_;
  std::unique_ptr<Writer> writer_;
};

/// Each worker needs memory for the pairs of letters of a query and a window.
void check_queries(const std::string& path, const std::vector<Sequence>& queries,
                   std::size_t workers) {
  for (const Sequence& query : queries) {
    const std::size_t letters = query.bases.size();
    if (letters >= kSeed && letters <= kMostQuery) {
      check_size(fmt::format("{}: query {}", path, in_quotes(std::string_view(query.name))),
                 {workers * letters, letters}, 1, {});
      continue;
    }
    fail_input("{}: query {} has {} letters, expected {} to {}", path,
               in_quotes(std::string_view(query.name)), letters, kSeed, kMostQuery);
  }
}

class GeneAlignmentApplication final : public Application {
 public:
  const char* name() const override { return "gene-alignment"; }
  const char* example() const override {
    return "weir run gene-alignment --output found.sam\n"
           "  weir run gene-alignment --input genome.fa.gz --query gene.fa --output found.sam";
  }
  bool has_tiles() const override { return false; }
  const char* summary() const override {
    return "find similar regions in sequences (generated, or from files)";
  }
  bool has_precision() const override { return false; }
  bool uses(std::string_view option) const override {
    return option != "--streams" || switches_.baseline;
  }
  bool streams_in_baseline() const override { return true; }
  bool has_pipeline() const override { return true; }
  std::size_t usual_n() const override { return kUsualGenome; }
  const char* input_help() const override {
    return "Targets: FASTA, or FASTA packed with gzip [a generated genome of --n letters, with "
           "genes]";
  }
  const char* output_help() const override { return "File for the alignments: .sam or .txt"; }
  void add_options(CommandOptions& options) override {
    options.add("--query", query_,
                "Queries, in the formats of --input [the first 1024 letters of the first target; "
                "without --input, the generated genes]");
    options.add("--chunk", chunk_, "Positions per chunk [1024]").within(std::size_t{1}, kMostChunk);
    add_pipeline_switches(options, switches_);
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    word_kernel(runtime);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    const std::string& output = parameters.output;
    if (!output.empty() && !output.ends_with(".sam") && !output.ends_with(".txt")) {
      fail_input("{}: expected the extension .sam or .txt", output);
    }
    Sequences sequences = parameters.input.empty() ? made_up(parameters) : read(parameters.input);
    check_queries(query_.empty() ? parameters.input : query_, sequences.queries,
                  app_streams.cores());
    return std::make_unique<GeneAlignment>(output, std::move(sequences), chunk_, switches_, runtime,
                                           app_streams);
  }

 private:
  Sequences read(const std::string& input) const {
    Sequences sequences{read_fasta(input), {}, {}, ""};
    if (query_.empty()) {
      const Sequence& first = sequences.targets.front();
      std::string bases = first.bases.substr(0, kUsualQuery);
      std::string name = first.name + ":1-" + std::to_string(bases.size());
      sequences.queries.push_back({std::move(name), std::move(bases)});
    } else {
      sequences.queries = read_fasta(query_);
    }
    return sequences;
  }
  Sequences made_up(const Parameters& parameters) const {
    if (!query_.empty()) {
      fail_input("gene-alignment has a query and no target: give it --input FILE, in FASTA");
    }
    const std::size_t letters = parameters.n > 0 ? parameters.n : kUsualGenome;
    if (letters < kLeastGenome || letters > kMostGenome) {
      fail_input("a genome of {} letters cannot be made up, expected --n from {} to {}", letters,
                 kLeastGenome, kMostGenome);
    }
    PlantedGenome made = make_planted_genome(letters, parameters.seed);
    Sequences sequences{{std::move(made.genome)}, {}, std::move(made.genes), ""};
    for (const PlantedGene& each : sequences.planted) sequences.queries.push_back(each.gene);
    sequences.origin = fmt::format(
        "made up: a genome of {} letters with {} genes (--seed {}); --input and --query read files",
        letters, sequences.planted.size(), parameters.seed);
    return sequences;
  }

  std::string query_;
  std::size_t chunk_ = 1024;
  PipelineSwitches switches_;
};

}  // namespace

std::unique_ptr<Application> make_gene_alignment() {
  return std::make_unique<GeneAlignmentApplication>();
}

}  // namespace weir::apps
