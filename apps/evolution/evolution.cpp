#include "evolution/evolution.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/command_options.hpp"
#include "common/input_error.hpp"
#include "common/matrix_io.hpp"
#include "common/parsing.hpp"
#include "common/pipeline_workload.hpp"
#include "evolution/fitness_kernel.hpp"
#include "evolution/population.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t kIslands = 2, kUsualPopulation = 2048;
constexpr std::size_t kMostGenes = 100000, kMostGenerations = 1000000;

/// The reported figures of a generation of one island.
struct Chronicle {
  std::uint64_t hash;
  double best;  ///< fitness, before crossing and mutation
  bool operator==(const Chronicle&) const = default;
};

// What an item takes a core of an AMD EPYC, in virtual time that of a simulated host.
constexpr double kGenomeNs = 6500, kEvaluateNs = 17'000, kSelectNs = 40, kCrossoverNs = 2700;

class Evolution final : public PipelineWorkload {
  using Creature = std::uint32_t;
  using Out = weir::Outlet<Creature>;

 public:
  Evolution(std::string output, const EvolutionOptions& options, std::size_t generations,
            const PipelineSwitches& switches, const weir::Runtime& runtime,
            const AppStreams& app_streams)
      : PipelineWorkload(runtime, app_streams, "evolution", switches,
                         StagePlaces::hosts_and_device),
        output_(std::move(output)),
        options_(options),
        generations_(generations),
        islands_{Island(options), Island(options)} {
    if (device() == nullptr) return;
    const std::span<const double> known = islands_[0].coefficients();
    coefficients_ = runtime.buffer(known.size_bytes(), "coefficients");
    std::copy(known.begin(), known.end(), coefficients_.data<double>());
    evaluate_on_device_ = fitness_stage(runtime, options, coefficients_);
  }

  /// Creatures.
  std::size_t n() const override { return kIslands * options_.creatures; }
  /// The multiplications and sums of evaluation.
  double operations() const override {
    const auto genes = static_cast<double>(options_.genes);
    const double each =
        options_.problem == Problem::polynomial ? genes * (genes + 3) / 2 : 3 * genes;
    return each * static_cast<double>(n() * generations_);
  }

  void save() const override {
    if (output_.empty()) return;
    Matrix<double> population(n(), options_.genes);
    for (std::size_t creature = 0; creature < n(); ++creature) {
      const auto genes = islands_[creature / options_.creatures].after(generations_ - 1);
      for (std::size_t j = 0; j < options_.genes; ++j) {
        population(creature, j) = genes[creature % options_.creatures * options_.genes + j];
      }
    }
    write_matrix(output_, population);
  }
  std::vector<Figure> figures() const override {
    return {{"best fitness", std::max(chronicles_[chronicles_.size() - 1].best,
                                      chronicles_[chronicles_.size() - 2].best)}};
  }

  /// Evolves one island after the other, a creature at a time.
  std::vector<Verification> verify(const ReferenceBlas&) const override {
    std::size_t different = 0, worse = 0;
    for (std::size_t island = 0; island < kIslands; ++island) {
      Island serial(options_);
      for (std::size_t generation = 0; generation < generations_; ++generation) {
        const std::size_t at = kIslands * generation + island;
        different += evolve(serial, {generation, island}) != chronicles_.at(at);
        worse += generation > 0 && chronicles_[at].best < chronicles_[at - kIslands].best;
      }
    }
    return {{"generations that differ from a serial evolution", static_cast<double>(different), 0},
            {"generations whose best is worse than the one before", static_cast<double>(worse), 0}};
  }

 private:
  /// Numbered from the first: generations of the islands in turn.
  static Era era_of(std::uint64_t epoch) { return {epoch / kIslands, epoch % kIslands}; }
  Island& island_of(Era era) { return islands_[era.island]; }
  std::size_t creatures() const { return options_.creatures; }

  Chronicle evolve(Island& island, Era era) const {
    for (std::size_t i = 0; i < creatures(); ++i) {
      island.reproduce(i, era);
      island.evaluate(i, era);
    }
    island.select();
    for (std::size_t i = 0; i < creatures(); ++i) {
      island.cross(i, era);
      island.mutate(i, era);
    }
    return has_reported(island, era);
  }
  static Chronicle has_reported(const Island& island, Era era) {
    return {hash_of(island.after(era.generation)), island.best_fitness()};
  }

  void clear() override { chronicles_.clear(); }
  void complete(Era era) { chronicles_.push_back(has_reported(island_of(era), era)); }

  /// While one island waits for its last creatures, the other one has work.
  weir::PipelineOptions wanted() override {
    return {.epochs = kIslands,
            .on_epoch = [this](std::uint64_t epoch) { complete(era_of(epoch)); }};
  }

  void connect(const weir::Pipeline& pipeline) override {
    const auto to_reproduce = pipeline.tunnel<Creature>("to reproduce");
    const auto to_cross = pipeline.tunnel<Creature>("to cross");
    const auto to_mutate = pipeline.tunnel<Creature>("to mutate");
    pipeline.source(
        "generations", weir::into(to_reproduce),
        [this, put = std::size_t{0}](const Out& out, weir::StageContext context) mutable {
          out.put(static_cast<Creature>(put % creatures()));
          if (++put % creatures() == 0) context.end_epoch();
          return put < n() * generations_;
        });
    if (evaluate_on_device_) {
      connect_device(pipeline, to_reproduce, to_cross);
    } else {
      connect_hosts(pipeline, to_reproduce, to_cross);
    }
    pipeline.stage(
        "crossover", to_cross, weir::into(to_mutate),
        [this](Creature rank, const Out& out, weir::StageContext context) {
          const Era era = era_of(context.epoch());
          island_of(era).cross(rank, era);
          out.put(rank);
        },
        at(3, kCrossoverNs));
    pipeline.stage(
        "mutate", to_mutate,
        [this](Creature rank, weir::StageContext context) {
          const Era era = era_of(context.epoch());
          island_of(era).mutate(rank, era);
        },
        at(4, 0));
  }

  void connect_hosts(const weir::Pipeline& pipeline, const weir::Tunnel<Creature>& to_reproduce,
                     const weir::Tunnel<Creature>& to_cross) {
    const auto to_evaluate = pipeline.tunnel<Creature>("to evaluate");
    const auto evaluated = pipeline.tunnel<Creature>("evaluated");
    pipeline.stage(
        "reproduce", to_reproduce, weir::into(to_evaluate),
        [this](Creature creature, const Out& out, weir::StageContext context) {
          const Era era = era_of(context.epoch());
          island_of(era).reproduce(creature, era);
          out.put(creature);
        },
        at(0, 0));
    pipeline.stage(
        "evaluate", to_evaluate, weir::into(evaluated),
        [this](Creature creature, const Out& out, weir::StageContext context) {
          const Era era = era_of(context.epoch());
          island_of(era).evaluate(creature, era);
          out.put(creature);
        },
        at(1, kEvaluateNs));
    connect_select(pipeline, evaluated, to_cross, [](Island&, Creature) {});
  }

  /// Sends creatures with their genes to the device, and receives their fitness.
  void connect_device(const weir::Pipeline& pipeline, const weir::Tunnel<Creature>& to_reproduce,
                      const weir::Tunnel<Creature>& to_cross) {
    const weir::Tunnel<double> genomes = genome_tunnel(pipeline);
    const auto evaluated = pipeline.tunnel<Evaluated>("evaluated");
    pipeline.stage(
        "reproduce", to_reproduce, weir::into(genomes),
        [this](Creature creature, const weir::Outlet<double>& out, weir::StageContext context) {
          const Era era = era_of(context.epoch());
          island_of(era).reproduce(creature, era);
          auto* const genome = static_cast<double*>(weir_outlet_add(out.handle()));
          if (genome == nullptr) throw weir::Error(WEIR_STATUS_OUT_OF_MEMORY, weir_last_error());
          write_genome(creature, era, genome);
        },
        at(0, kGenomeNs));
    connect_kernel(pipeline, "evaluate", genomes, evaluated, *evaluate_on_device_);
    connect_select(pipeline, evaluated, to_cross, note);
  }

  /// How many genes creatures have is not known to the compiler.
  weir::Tunnel<double> genome_tunnel(const weir::Pipeline& pipeline) const {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.name = "genomes";
    options.item_bytes = evaluate_on_device_->item_bytes;
    weir_tunnel* made = nullptr;
    weir::check(weir_pipeline_add_tunnel(pipeline.handle(), &options, &made));
    return weir::Tunnel<double>(made);
  }
  void write_genome(std::size_t creature, Era era, double* genome) const {
    const std::span<const double> genes = islands_[era.island].genes_of(creature, era);
    *genome = static_cast<double>(creature);
    std::copy(genes.begin(), genes.end(), genome + 1);
  }
  static void note(Island& island, const Evaluated& known) {
    island.note(static_cast<std::size_t>(known.creature), known.fitness);
  }

  /// Waits for all creatures of an island; calls note(island, item) for each.
  template <class Item, class Note>
  void connect_select(const weir::Pipeline& pipeline, const weir::Tunnel<Item>& evaluated,
                      const weir::Tunnel<Creature>& to_cross, Note note) {
    weir::StageOptions alone = at(2, kSelectNs);
    alone.workers = 1;
    pipeline.stage(
        "select", evaluated, weir::into(to_cross),
        [this, note, known = std::array<std::size_t, kIslands>{}](
            const Item& item, const Out& out, weir::StageContext context) mutable {
          const Era era = era_of(context.epoch());
          note(island_of(era), item);
          if (++known[era.island] < creatures()) return;
          known[era.island] = 0;
          island_of(era).select();
          for (Creature rank = 0; rank < creatures(); ++rank) out.put(rank);
        },
        alone);
  }

  /// A chunk is a generation of an island; the device evaluates one while the cores work on the
  /// other island.
  void loop(ChunkLoop& chunks) override {
    const auto stage = [&](const char* name, double item_ns, Era era,
                           void (Island::*step)(std::size_t, Era) noexcept) {
      Island& island = island_of(era);
      chunks.run(name, creatures(), item_ns, [&](const ChunkPart& part) {
        for (std::size_t i = part.first; i < part.end; ++i) (island.*step)(i, era);
      });
    };
    const auto begin = [&](std::size_t epoch) {
      const Era era = era_of(epoch);
      stage("reproduce", 0, era, &Island::reproduce);
      if (evaluate_on_device_) return launch_evaluation(chunks, era);
      stage("evaluate", kEvaluateNs, era, &Island::evaluate);
    };
    const auto end = [&](std::size_t epoch) {
      const Era era = era_of(epoch);
      if (evaluate_on_device_) {
        for (const auto& known : chunks.results<Evaluated>("evaluate", *evaluate_on_device_)) {
          note(island_of(era), known);
        }
      }
      chunks.run("select", creatures(), 0, [&](const ChunkPart& part) {
        if (part.first == 0) island_of(era).select();
      });
      chunks.work(creatures(), kSelectNs);
      stage("crossover", kCrossoverNs, era, &Island::cross);
      stage("mutate", 0, era, &Island::mutate);
      complete(era);
    };
    chunks.each_chunk(kIslands * generations_, evaluate_on_device_.has_value(), begin, end);
  }

  void launch_evaluation(ChunkLoop& chunks, Era era) {
    const std::size_t genome = options_.genes + 1;
    std::vector<double> genomes(creatures() * genome);
    chunks.run("genomes", creatures(), kGenomeNs, [&](const ChunkPart& part) {
      for (std::size_t i = part.first; i < part.end; ++i) {
        write_genome(i, era, &genomes[i * genome]);
      }
    });
    chunks.launch("evaluate", *evaluate_on_device_, genomes);
  }

  void describe(nlohmann::ordered_json& json) const override {
    json["generations"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < chronicles_.size(); i += kIslands) {
      nlohmann::ordered_json islands = nlohmann::ordered_json::array();
      for (std::size_t island = 0; island < kIslands; ++island) {
        const Chronicle& chronicle = chronicles_[i + island];
        islands.push_back(
            {{"best", chronicle.best}, {"hash", fmt::format("{:016x}", chronicle.hash)}});
      }
      json["generations"].push_back(std::move(islands));
    }
  }

  const std::string output_;
  const EvolutionOptions options_;
  const std::size_t generations_;
  std::array<Island, kIslands> islands_;
  weir::Buffer coefficients_;  ///< for a device
  std::optional<DeviceStage> evaluate_on_device_;
  std::vector<Chronicle> chronicles_;  ///< by epoch
};

class EvolutionApplication final : public Application {
 public:
  const char* name() const override { return "evolution"; }
  const char* example() const override {
    return "weir run evolution --n 2048 --domains host,sim:gbps=6 --verify";
  }
  bool has_tiles() const override { return false; }
  const char* summary() const override {
    return "evolve creatures on two islands with a genetic algorithm";
  }
  bool uses(std::string_view option) const override {
    return option != "--input" && (option != "--streams" || switches_.baseline);
  }
  bool streams_in_baseline() const override { return true; }
  bool has_pipeline() const override { return true; }
  std::size_t usual_n() const override { return kUsualPopulation; }
  const char* output_help() const override {
    return "File for the last generation, a row for each creature: .mtx or .npy";
  }
  void add_options(CommandOptions& options) override {
    options.add("--genes", options_.genes, "Genes per creature [500]")
        .within(std::size_t{1}, kMostGenes);
    options.add("--generations", generations_, "Number of generations [20]")
        .within(std::size_t{1}, kMostGenerations);
    options.add("--eliminate", options_.eliminate,
                "Creatures of each island that are replaced in each generation [0]");
    options
        .add(
            "--problem",
            [this](const std::string& word) {
              options_.problem = word == "target" ? Problem::target : Problem::polynomial;
            },
            "polynomial: the fitness function of Hetero-Mark; target: the distance to a point "
            "[polynomial]")
        .one_of({"polynomial", "target"});
    add_pipeline_switches(options, switches_);
  }
  void register_kernels(const Parameters&, const weir::Runtime& runtime) const override {
    fitness_kernel(runtime);
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    if (!parameters.input.empty()) {
      fail_input("{}: evolution begins with creatures of its own: leave --input out",
                 parameters.input);
    }
    if (parameters.single) fail_input("{} computes in double: leave --precision out", name());
    if (!parameters.output.empty()) check_output_format(parameters.output);
    const std::size_t population = parameters.n > 0 ? parameters.n : kUsualPopulation;
    constexpr std::size_t kFewest = kIslands * Island::kBest;
    if (population % kIslands != 0 || population < kFewest) {
      fail_input("--n {}: expected an even number of creatures, {} or more", population, kFewest);
    }
    options_.creatures = population / kIslands;
    options_.seed = parameters.seed;
    if (options_.eliminate > options_.creatures - Island::kBest) {
      fail_input("--eliminate {}: an island has {} creatures, of which the best {} stay",
                 options_.eliminate, options_.creatures, Island::kBest);
    }
    constexpr std::size_t kCopies = 2;
    check_size(fmt::format("--n {}", population), {kCopies * population, options_.genes},
               sizeof(double), {});
    return std::make_unique<Evolution>(parameters.output, options_, generations_, switches_,
                                       runtime, app_streams);
  }

 private:
  EvolutionOptions options_;
  std::size_t generations_ = 20;
  PipelineSwitches switches_;
};

}  // namespace

std::unique_ptr<Application> make_evolution() { return std::make_unique<EvolutionApplication>(); }

}  // namespace weir::apps
